"""Runs code before and after a rewrite, each in a fresh process, and says whether it does the same.

Needs torch and the standard library only, so that it runs on a machine where nothing else of torchmod is installed:
``python -m torchmod.verify golden``.
"""

import os

# Lets torch look for a GPU without starting CUDA in this process: a forked child could not use it any more.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
