"""The transforms, one module or one small package each; they import `torchmod.api` and the standard library only."""
