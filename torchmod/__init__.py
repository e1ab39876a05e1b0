"""torchmod rewrites old PyTorch code so that it runs, correctly, on today's PyTorch."""

__version__ = "0.1.0"
