"""Python control flow on tensors: functions rewritten so that `if`, `while`, `for` and their like become graph ops."""
