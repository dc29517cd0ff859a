#!/usr/bin/env python3
"""A file system in memory on a slow disk: fsync(2) there waits in the kernel until this program answers.

slow_server.py MOUNTPOINT SEED
Mounts itself (FUSE, linux/fuse.h) in the mount namespace that it was started in, prints "ready", and serves until
it is killed; the kernel then ends the connection, and the mount goes with the namespace. It does one thing at a
time, as a disk does one flush at a time. A flush takes MEDIAN_S times a log-normal factor, one in fifty STALL
times as long.
"""

import ctypes
import enum
import errno
import os
import random
import signal
import stat
import struct
import sys
import time

MEDIAN_S, SIGMA, STALL = 0.003, 0.4, 6
ROOT, MAX_WRITE = 1, 128 * 1024
PR_SET_PDEATHSIG = 1
IN_HEADER = struct.Struct("<IIQQIIIHH")
SET_SIZE = 1 << 3


class Op(enum.IntEnum):
    """enum fuse_opcode, as far as it is served."""

    LOOKUP, FORGET, GETATTR, SETATTR = 1, 2, 3, 4
    UNLINK, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 10, 14, 15, 16, 17, 18, 20
    FLUSH, INIT, OPENDIR, RELEASEDIR, CREATE, INTERRUPT, BATCH_FORGET = 25, 26, 27, 29, 35, 36, 42


class SlowDisk:
    """Files of one directory, by inode."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.names, self.files, self.last = {}, {}, ROOT

    def flush(self):
        factor = self.chance.lognormvariate(0, SIGMA) * (STALL if self.chance.random() < 0.02 else 1)
        time.sleep(MEDIAN_S * factor)

    def attributes(self, node):
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o600
        size = 0 if node == ROOT else len(self.files[node])
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<QQQQII", node, 0, 3600, 3600, 0, 0) + self.attributes(node)

    def attributes_reply(self, node):
        return struct.pack("<QII", 3600, 0, 0) + self.attributes(node)

    def answer(self, operation, node, body):
        """The reply's bytes; None where there is none."""
        name = body.rstrip(b"\0")
        match operation:
            case Op.INIT:
                return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 16, 12, MAX_WRITE, 1, 0, 0, 0)
            case Op.LOOKUP if name in self.names:
                return self.entry(self.names[name])
            case Op.LOOKUP:
                raise OSError(errno.ENOENT, "")
            case Op.FORGET | Op.BATCH_FORGET | Op.INTERRUPT:
                return None
            case Op.GETATTR:
                return self.attributes_reply(node)
            case Op.SETATTR:
                valid, size = struct.unpack_from("<I12xQ", body)
                if valid & SET_SIZE:
                    self.files[node] = self.files[node][:size].ljust(size, b"\0")
                return self.attributes_reply(node)
            case Op.UNLINK:
                del self.names[name]  # its data stays for those who have it open
                return b""
            case Op.OPEN | Op.OPENDIR:
                return struct.pack("<QII", 0, 0, 0)
            case Op.CREATE:
                name = body[16:].rstrip(b"\0")
                self.last += 1
                self.names[name], self.files[self.last] = self.last, bytearray()
                return self.entry(self.last) + struct.pack("<QII", 0, 0, 0)
            case Op.READ:
                offset, size = struct.unpack_from("<8xQI", body)
                return bytes(self.files[node][offset:offset + size])
            case Op.WRITE:
                offset, size = struct.unpack_from("<8xQI", body)
                self.files[node][offset:offset + size] = body[40:40 + size]
                return struct.pack("<II", size, 0)
            case Op.STATFS:
                return struct.pack("<5Q4I24x", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, 0)
            case Op.RELEASE | Op.FLUSH | Op.RELEASEDIR:
                return b""
            case Op.FSYNC:
                self.flush()
                return b""
        raise OSError(errno.ENOSYS, "")

    def serve(self, device):
        while True:
            try:
                request = os.read(device, MAX_WRITE + 4096)
            except InterruptedError:
                continue
            _, operation, unique, node, *_ = IN_HEADER.unpack_from(request)
            error, reply = 0, b""
            try:
                reply = self.answer(operation, node, request[IN_HEADER.size:])
            except OSError as refused:
                error = refused.errno
            if reply is None:
                continue
            try:
                os.write(device, struct.pack("<IiQ", 16 + len(reply), -error, unique) + reply)
            except FileNotFoundError:
                pass  # whoever asked was killed


def main():
    where, seed = sys.argv[1], sys.argv[2]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"slow-disk", where.encode(), b"fuse", 0, options) != 0:
        sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    print("ready", flush=True)
    SlowDisk(seed).serve(device)


if __name__ == "__main__":
    main()
