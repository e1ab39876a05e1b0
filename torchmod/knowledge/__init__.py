"""What is known of torch: generated tables, checked against an installed torch in the tests.

`signatures` and `stars` come from `generate`; `index` and `examples` come from ``torchmod docs --write``.
"""
