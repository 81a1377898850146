"""Python control flow on tensors: rewrites functions so that `if`, `while`, `for` and other statements become graph ops."""
