"""The pieces that Ray's lines share, as parts of a regex."""

CPP = r"(?:(?:[DIWECF] \d+ \d+\] )?(?:\(\w+\) )?(?:[\w.]+:\d+: )?)"
"""What a torn or short Ray C++ prefix leaves before the message (`E 4200 4231] `, `(raylet) node_manager.cc:1: `)."""

EXCEPTION = r"(?:(?:ray\.exceptions\.)?)"
"""The module of Ray's exceptions, which the driver prints and a log call may not."""

FAULTY_EXIT = r"(?P<exit>SYSTEM_ERROR|NODE_OUT_OF_MEMORY|USER_ERROR)"
INTENDED_EXIT = r"INTENDED_(?:USER|SYSTEM)_EXIT"
