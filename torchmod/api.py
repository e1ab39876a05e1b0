"""The only module that a transform imports: what it is handed, what it may say, and what is known of torch."""

from torchmod.arguments import Operand
from torchmod.calls import Call
from torchmod.knowledge import signatures
from torchmod.knowledge.signature import Signature
from torchmod.model import Edit, Finding, Fix, Need, Refused, Span
from torchmod.registry import transform
from torchmod.subjects import Document, Module, ProjectFiles

__all__ = [
    "Call",
    "Document",
    "Edit",
    "Finding",
    "Fix",
    "Module",
    "Need",
    "Operand",
    "ProjectFiles",
    "Refused",
    "Signature",
    "Span",
    "signatures",
    "transform",
]
