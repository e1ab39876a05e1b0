"""The direction of the imports, and what only some modules may do."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = [
    {"basics"},
    {"model"},
    {"source", "edits", "words", "prefilter", "knowledge"},
    {"scopes", "settings", "selection"},
    {"replacing"},
    {"names"},
    {"subjects", "arguments", "imports", "regions", "project", "suppressions"},
    {"calls", "trees"},
    {"registry", "guards"},
    {"api", "engine"},
    {"rounds", "writing", "discover"},
    {"runner"},
    {"report"},
    {"docs", "scaffold"},
    {"cli"},
    {"__main__"},
]
"""From the ground up: a module imports from its own layer and from those before it."""
LATE = {("selection", "registry"), ("settings", "subjects"), ("prefilter", "knowledge")}
"""Imports upwards that are made inside a function, or for types only: a start that does without them is faster."""
WRITERS = {"writing", "scaffold", "docs", "knowledge"}
SPEAKERS = {"cli", "report"}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def unit(path: Path) -> str:
    return path.relative_to(ROOT / "torchmod").parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The full names of imported modules, and whether they are imported whenever the module is."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) in top
            yield from ((f"{node.module}.{alias.name}", id(node) in top) for alias in node.names)


def own(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "torchmod" and len(parts) > 1 else None


def layer(name: str) -> int | None:
    return next((number for number, names in enumerate(LAYERS) if name in names), None)


VERIFY = modules("torchmod/verify")
CORE = [path for path in modules("torchmod") if path not in VERIFY and path != ROOT / "torchmod" / "__init__.py"]


def test_every_module_has_a_layer() -> None:
    assert {unit(path) for path in CORE} == {name for names in LAYERS for name in names}


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    mine = unit(path)
    for name, always in imports(path):
        other = own(name)
        if other is None or layer(other) is None or other == mine:
            continue
        up = (layer(other) or 0) > (layer(mine) or 0)
        assert not up or ((mine, other) in LATE and not always), f"{mine} imports {name}"


@pytest.mark.parametrize("path", VERIFY, ids=lambda path: str(path.relative_to(ROOT)))
def test_verify_stands_alone(path: Path) -> None:
    """It runs where nothing but torch is installed; h5py and numpy only where a case uses them."""
    import sys

    for name, always in imports(path):
        top = name.split(".")[0]
        optional = top in ("h5py", "numpy") and not always
        assert top in ("torch", *sys.stdlib_module_names) or name.startswith("torchmod.verify") or optional, name


@pytest.mark.parametrize("path", modules("transforms"), ids=lambda path: path.name)
def test_transforms_import_the_api_and_the_standard_library_only(path: Path) -> None:
    import sys

    for name, _ in imports(path):
        known = name.split(".")[0] in sys.stdlib_module_names or name.startswith("torchmod.api")
        assert known, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_but_the_generator_imports_torch_and_nothing_imports_bare_transforms(path: Path) -> None:
    for name, _ in imports(path):
        assert name.split(".")[0] not in ("torch", "transforms"), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_names_no_transform(path: Path) -> None:
    generated = {"index.py", "examples.py"}
    names = {p.stem.replace("_", "-") for p in modules("transforms") if p.stem != "__init__"}
    text = path.read_text(encoding="utf-8")
    strings = {n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert path.name in generated or not names & strings


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_some_modules_write_files_and_only_some_print(path: Path) -> None:
    mine = unit(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                assert mine in SPEAKERS, f"{path.name}:{node.lineno} prints"
            case ast.Call(func=ast.Name(id="open"), args=[_, ast.Constant(value=str(mode)), *_]):
                assert mode == "rb" or mine in WRITERS, f"{path.name}:{node.lineno} opens a file to write"
            case ast.Call(func=ast.Attribute(attr="write_text" | "write_bytes" | "unlink" | "replace_file")):
                assert mine in WRITERS, f"{path.name}:{node.lineno} writes a file"


@pytest.mark.parametrize("path", [*CORE, *modules("transforms")], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_grows_past_400_lines(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= 400


def test_the_top_level_is_the_fixed_one() -> None:
    """What git would take: no other folder, no setup.py beside pyproject.toml."""
    import subprocess

    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("not in a git checkout")
    allowed = {"pyproject.toml", "torchmod", "transforms", "tests", "golden", "README.md", "LICENSE", "CHANGELOG.md"}
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= allowed


def test_every_package_is_installed() -> None:
    import tomllib

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    core = {".".join(path.relative_to(ROOT).parent.parts) for path in modules("torchmod")}
    extra = {".".join(("torchmod", *path.relative_to(ROOT).parent.parts)) for path in modules("transforms")}
    assert set(listed) == core | extra
