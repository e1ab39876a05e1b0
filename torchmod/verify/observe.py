"""What happens in the child of a job: run the program, watch it, and take down what can be seen of it."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchmod.verify import opens, simulated
from torchmod.verify.attributes import is_own
from torchmod.verify.child import STDOUT
from torchmod.verify.digests import digest
from torchmod.verify.files import State, changes, files_below
from torchmod.verify.snapshot import MISSING, Snapshots
from torchmod.verify.tensors import content, graph_nodes, tensors_in
from torchmod.verify.trace import Device, Job, Output, Raised, Snapshot, Trace

_PROGRAM, _SETUP = "program.py", "setup.py"
"""The same name before and after, so that what a program says of itself is the same too."""
_MOST_TEXT, _MOST_MESSAGE, _DEPTH = 20_000, 1_000, 1_000
_CODE = types.ModuleType | types.FunctionType | types.BuiltinFunctionType | types.MethodType


def run(job: Job) -> Trace:
    """Run a job in this process, which is spoilt by it: the simulated device cannot be taken out again."""
    run = _Run(job, os.getcwd())
    run.execute()
    return run.trace


def run_plain(job: Job) -> dict[str, Any]:
    """The trace of a job, as plain data: what crosses the process boundary."""
    return run(job).plain()


class _Run:
    """One program: its namespace, and what was found out so far."""

    def __init__(self, job: Job, work: str) -> None:
        self.job, self.work, self.beside = job, work, os.path.dirname(work)
        self.log = os.path.join(self.beside, "opened")
        self.process = os.getpid()
        self.snapshots = Snapshots(self.beside)
        self.trace = Trace(device=choose_device(job), emulated=bool(job.legacy))
        self.stdout = sys.stdout
        self.module = types.ModuleType("__main__")
        self.module.__file__ = os.path.join(work, _PROGRAM)
        self.inputs: dict[str, torch.Tensor] = {}
        self.old_files: dict[str, State] = {}
        self.printed = 0

    @property
    def names(self) -> dict[str, Any]:
        return vars(self.module)

    def execute(self) -> None:
        """Everything, from the setup to the last observation."""
        sys.modules["__main__"] = self.module
        sys.setrecursionlimit(_DEPTH)  # whatever the process had that was forked
        sys.argv[:] = [os.path.join(self.work, _PROGRAM)]
        sys.path.insert(0, self.work)
        with self._counting_opens() as opened:
            try:
                with self._old_meaning() as source:
                    with open(_PROGRAM, "w", encoding="utf-8") as file:  # for whoever wants to read its own source
                        file.write(source)
                    self._set_up()
                    self._program(source)
            except BaseException as error:
                self.trace.exception = self._raised(error)
            if os.getpid() != self.process:
                os._exit(0)  # a process that the program started came out of it too
            os.chdir(self.work)
            sys.setrecursionlimit(_DEPTH)
            self._look()
            self.trace.opened = opened()

    def _counting_opens(self) -> AbstractContextManager[Callable[[], dict[str, int]]]:
        if "h5py" in self.job.source or "h5py" in self.job.setup:
            return opens.counted(self.log)
        return contextlib.nullcontext(dict)

    @contextlib.contextmanager
    def _old_meaning(self) -> Iterator[str]:
        """The source to run, in a torch that means what it meant then. Before the setup, whose imports count too."""
        if not self.job.legacy:
            yield self.job.source
            return
        legacy = importlib.import_module("torchmod.verify.legacy")
        try:
            with legacy.legacy_runtime(self.job.legacy):
                yield legacy.modernise(self.job.source)
        finally:
            self.trace.emulations = dict(legacy.fired)

    def _set_up(self) -> None:
        """Run the setup, and hand over what it made, but not the modules: a program has its own imports."""
        made: dict[str, Any] = {"__name__": "__main__"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(self.job.setup, _SETUP, "exec"), made)
        public = {name: one for name, one in made.items() if not name.startswith("_")}
        self.names.update((name, one) for name, one in public.items() if not isinstance(one, types.ModuleType))
        for name, value in public.items():
            found = [one for one in tensors_in(value) if one.is_floating_point() and one.is_leaf]
            for index, tensor in enumerate(found):
                self.inputs[name if len(found) == 1 else f"{name}.{index}"] = tensor
        self.trace.inputs = list(self.inputs)
        if self.job.inputs_require_grad:
            for tensor in self.inputs.values():
                tensor.requires_grad_()
        self.old_files = files_below(self.work)
        if os.path.exists(self.log):
            os.truncate(self.log, 0)
        self.stdout.flush()
        self.printed = os.fstat(1).st_size
        seed(self.job.seed)

    def _program(self, source: str) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(source, _PROGRAM, "exec"), self.names)
            finally:
                texts = [self.snapshots.text(f"{one.category.__name__}: {one.message}") for one in caught]
                self.trace.warnings = sorted(set(texts))

    def _raised(self, error: BaseException) -> Raised | None:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return None
        lines = {frame.f_code.co_filename: line for frame, line in traceback.walk_tb(error.__traceback__)}
        line = lines.get(_PROGRAM)
        where = f"in {_SETUP}: " if line is None and _SETUP in lines else ""
        try:
            message = str(error)
        except Exception:
            message = "(its message cannot be made)"
        if isinstance(error, SyntaxError):
            message = error.msg
            line = error.lineno if error.filename == _PROGRAM else line
            where = f"in {_SETUP}: " if error.filename == _SETUP else where
        return Raised(type(error).__name__, where + self.snapshots.short_text(message, _MOST_MESSAGE), line)

    def _look(self) -> None:
        """Take down everything that can be seen."""
        trace = self.trace
        trace.output = self._output()
        trace.random = random_states()
        public = [name for name, value in self.names.items() if not name.startswith("_") and _is_data(value)]
        watched = {name: self.names[name] for name in self.job.watch or public if name in self.names}
        trace.values = {name: MISSING for name in self.job.watch if name not in watched}
        trace.values |= {name: self.snapshots.of(value) for name, value in watched.items()}
        trace.held_nodes = graph_nodes(tensors_in(watched))
        trace.files = changes(self.work, self.old_files, self.snapshots)
        if self.job.inputs_require_grad:
            trace.gradients = {name: self._gradients(value) for name, value in watched.items()}

    def _output(self) -> Output:
        with contextlib.suppress(Exception):
            self.stdout.flush()
        with open(os.path.join(self.beside, STDOUT), "rb") as file:
            file.seek(self.printed)
            data = file.read()
            length = os.fstat(file.fileno()).st_size - self.printed
        text = self.snapshots.text(data.decode("utf-8", "backslashreplace"))
        return Output(text[:_MOST_TEXT], length, digest(text.encode()))

    def _gradients(self, value: Any) -> Snapshot:
        """What the inputs get when the results under a name are weighed in a fixed way and propagated back."""
        inputs = {name: one for name, one in self.inputs.items() if one.requires_grad}
        results = [one for one in tensors_in(value) if one.grad_fn is not None and one.is_floating_point()]
        if not results or not inputs:
            return MISSING
        weights = [torch.arange(1.0, one.numel() + 1).cos().reshape(one.shape).to(one) for one in results]
        try:
            found = torch.autograd.grad(
                results, list(inputs.values()), weights, retain_graph=True, allow_unused=True, materialize_grads=False
            )
        except RuntimeError as error:  # the program has freed the graph
            return {"kind": "object", "type": type(error).__name__, "attributes": {}}
        return self.snapshots.of(dict(zip(inputs, found, strict=True)))


def _is_data(value: object) -> bool:
    """Whether there is something to compare: of classes only those that the program made, for their data."""
    return is_own(value) if isinstance(value, type) else not isinstance(value, _CODE)


def choose_device(job: Job) -> str:
    """Make the job's device the one that CUDA code gets, and seed everything; gives the device's name."""
    torch._C._set_deterministic_algorithms(True, warn_only=True)  # the public call imports torch._inductor: 1 s
    device = "cpu"
    if job.device is Device.CPU:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    else:
        real = simulated.real_cuda() and job.device is not Device.SIMULATED
        if job.device is Device.CUDA and not real:
            raise RuntimeError("there is no CUDA device here")
        if real:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for sums that come out the same again
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.benchmark = False
            device = f"cuda ({torch.cuda.get_device_name(0)})"
        else:
            simulated.install(job.devices)
            device = "simulated"
    seed(job.seed)
    return device


def seed(value: int) -> None:
    random.seed(value)
    torch.manual_seed(value)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value)


def random_states() -> dict[str, str]:
    """Where the generators of random numbers have got to."""
    states = {
        "torch": digest(content(torch.get_rng_state())),
        "python": digest(repr(random.getstate()).encode()),
    }
    if "numpy" in sys.modules:
        _, numbers, *rest = sys.modules["numpy"].random.get_state()
        states["numpy"] = digest(numbers.tobytes() + repr(rest).encode())
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for index, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"cuda:{index}"] = digest(content(state.cpu()))
    return states
