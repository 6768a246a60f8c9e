"""Become an account with a view of this machine, and run a command in it: `python -m tests.runs.pools.ray_account JSON`.

`hide` and `show` are folders (runs/pools/cell.py), for an account that has no other way to the command. This process stays as the parent of
whatever the command leaves behind, so that all of it can be found; it ends after the last of it.
"""

import json
import os
import pwd
import sys

from runs.pools import cell
from runs.pools.launcher import PR_SET_CHILD_SUBREAPER


def become(user: str) -> None:
    account = pwd.getpwnam(user)
    if account.pw_uid != os.getuid():
        os.initgroups(user, account.pw_gid)
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)


if __name__ == "__main__":
    call = json.loads(sys.argv[1])
    if call["hide"]:
        cell.checked(cell.libc.unshare(cell.CLONE_NEWNS), "unshare")
        cell.mount("none", "/", None, cell.MS_REC | cell.MS_PRIVATE)
        cell.hide(call["hide"], call["show"], [], 0)
    os.chdir(call["home"])
    cell.checked(cell.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "sub-reaper")
    if os.fork() == 0:
        become(call["user"])
        # Ray's own environment reaches its jobs.
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": call["home"], "LANG": "C.UTF-8"}
        os.execve(call["argv"][0], call["argv"], env)  # noqa: S606 -- a list, no shell
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
