"""Explicit role schedules: T.annotate_ws_schedule, what it takes, and the kernel that it makes of a straight one."""
