"""The head of a kernel log line, as a part of a regex."""

DMESG = (
    r"(?:(?:kern +:\w+ *: )?(?:\[ *\d+\.\d+\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] "
    r"|\d{4}-\d\d-\d\dT[\d:.,]+(?:[+-][\d:]+"
    r"|Z) )?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} )?(?:(?:[\w.-]+ )?kernel: )?(?:\[ *\d+\.\d+\] )?)"
)
"""dmesg plain, with -T, with --time-format=iso or with -x; syslog's host and `kernel:` where they are left."""
