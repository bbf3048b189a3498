"""File descriptors: every stream takes two, and the soft limit of many systems ends at 1,024."""

import resource

ENOUGH = 65_536


def raise_file_limit() -> None:
    """Raises the soft limit towards the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
