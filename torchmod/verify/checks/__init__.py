"""What unmodified CUDA code may expect of its device: the checks of the battery.

Each function of the modules here that takes and gives nothing is a check: it runs in a process of its own, on a real
or on the simulated device, and uses nothing but public names of torch.
"""
