// The cells of ../cells that a Go program can have: its own system calls, with no C library between.
// Arguments: GROUP DIRECTORY. One line per cell: `interface kind result errno [note]`; a success has no errno.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"
)

// Numbers that package syscall does not have.
const (
	sysPidfdOpen = 434
	sysOpenat2   = 437
)

var sysSyncfs, sysPwritev2, sysMemfd = numbers()

func numbers() (syncfs, pwritev2, memfd uintptr) {
	if runtime.GOARCH == "arm64" {
		return 267, 287, 279
	}
	return 306, 328, 319
}

const (
	atFdcwd  = -100
	msAsync  = 1
	msInval  = 2
	msSync   = 4
	rwfDsync = 0x2
	rwfSync  = 0x4
	oPath    = 0o10000000
	oTmpfile = 0o20000000 | syscall.O_DIRECTORY
	loneSync = syscall.O_SYNC &^ syscall.O_DSYNC
	page     = 4096
)

var out = bufio.NewWriter(os.Stdout)

var names = map[syscall.Errno]string{
	syscall.EPERM: "EPERM", syscall.ENOENT: "ENOENT", syscall.EBADF: "EBADF", syscall.EAGAIN: "EAGAIN",
	syscall.ENOMEM: "ENOMEM", syscall.EACCES: "EACCES", syscall.EFAULT: "EFAULT", syscall.EBUSY: "EBUSY",
	syscall.EEXIST: "EEXIST", syscall.ENOTDIR: "ENOTDIR", syscall.EISDIR: "EISDIR", syscall.EINVAL: "EINVAL",
	syscall.ESPIPE: "ESPIPE", syscall.EPIPE: "EPIPE", syscall.ELOOP: "ELOOP", syscall.ENOSYS: "ENOSYS",
	syscall.ENOTCONN: "ENOTCONN", syscall.EOPNOTSUPP: "EOPNOTSUPP", syscall.ENXIO: "ENXIO",
}

func cell(call, kind string, result int, err error, note string) {
	name := "-"
	if err != nil {
		var number syscall.Errno
		name = err.Error()
		if errors.As(err, &number) {
			name = names[number]
			if name == "" {
				name = fmt.Sprint(int(number))
			}
		}
		result = -1
	}
	if note != "" {
		note = " " + note
	}
	fmt.Fprintf(out, "%s %s %d %s%s\n", call, kind, result, name, note)
}

// An Errno of 0 is no error.
func raw(number uintptr, a ...uintptr) (int, error) {
	var args [6]uintptr
	copy(args[:], a)
	result, _, errno := syscall.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return -1, errno
	}
	return int(result), nil
}

func must(fd int, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return fd
}

type kind struct {
	name string
	fd   int
}

func kinds() []kind {
	open := func(path string, flags int) int { return must(syscall.Open(path, flags, 0o600)) }
	text := append([]byte("memfd"), 0)
	var ends [2]int
	if syscall.Pipe(ends[:]) != nil || syscall.Mkfifo("fifo", 0o600) != nil {
		os.Exit(1)
	}
	return []kind{
		{"regular_rdwr", open("file", syscall.O_RDWR)},
		{"regular_rdonly", open("file", syscall.O_RDONLY)},
		{"regular_unlinked", open(".", oTmpfile|syscall.O_RDWR)},
		{"directory", open(".", syscall.O_RDONLY|syscall.O_DIRECTORY)},
		{"memfd", must(raw(sysMemfd, uintptr(unsafe.Pointer(&text[0])), 0))},
		{"sysfs_file", open("/sys/kernel/mm/transparent_hugepage/enabled", syscall.O_RDONLY)},
		{"path_file", open("file", oPath)},
		{"path_directory", open(".", oPath)},
		{"closed", 900},
		{"minus_one", -1},
		{"pipe_read", ends[0]},
		{"pipe_write", ends[1]},
		{"fifo", open("fifo", syscall.O_RDWR)},
		{"socket_unix", must(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))},
		{"socket_inet", must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))},
		{"eventfd", must(raw(syscall.SYS_EVENTFD2, 0, 0))},
		{"epoll", must(syscall.EpollCreate1(0))},
		{"timerfd", must(raw(syscall.SYS_TIMERFD_CREATE, 1, 0))},
		{"inotify", must(syscall.InotifyInit1(0))},
		{"dev_null", open("/dev/null", syscall.O_RDWR)},
		{"ptmx", open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY)},
		{"proc_file", open("/proc/self/status", syscall.O_RDONLY)},
		{"proc_directory", open("/proc/self", syscall.O_RDONLY|syscall.O_DIRECTORY)},
		{"pidfd", must(raw(sysPidfdOpen, uintptr(os.Getpid()), 0))},
		{"nsfs", open("/proc/self/ns/net", syscall.O_RDONLY)},
	}
}

// Kept to the end: a collected os.File closes its descriptor.
var files []*os.File

func descriptors() {
	for _, k := range kinds() {
		if file := os.NewFile(uintptr(k.fd), k.name); file != nil && k.fd >= 0 {
			files = append(files, file)
			cell("File.Sync", k.name, 0, file.Sync(), "")
		}
		fd := uintptr(k.fd)
		cell("syscall.Fsync", k.name, 0, syscall.Fsync(k.fd), "")
		cell("syscall.Fdatasync", k.name, 0, syscall.Fdatasync(k.fd), "")
		cell("syscall.SyncFileRange", k.name, 0, syscall.SyncFileRange(k.fd, 0, 0, 7), "")
		cell("syscall.SyncFileRange_no_flags", k.name, 0, syscall.SyncFileRange(k.fd, 0, 0, 0), "")
		cell("syscall.SyncFileRange_bad_flags", k.name, 0, syscall.SyncFileRange(k.fd, 0, 0, 0x99), "")
		cell("syscall.SyncFileRange_negative_offset", k.name, 0, syscall.SyncFileRange(k.fd, -1, 0, 7), "")
		result, err := raw(sysSyncfs, fd)
		cell("raw_syncfs", k.name, result, err, "")
	}
	syscall.Sync()
	cell("syscall.Sync", "everything", 0, nil, "")
}

func mapped(fd, flags int) uintptr {
	at, err := raw(syscall.SYS_MMAP, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, uintptr(flags), uintptr(fd), 0)
	return uintptr(must(at, err))
}

func ranges() {
	fd := must(syscall.Open("mapped", syscall.O_RDWR|syscall.O_CREAT, 0o600))
	if err := syscall.Ftruncate(fd, 3*page); err != nil {
		must(0, err)
	}
	shared := mapped(fd, syscall.MAP_SHARED)
	holed := mapped(fd, syscall.MAP_SHARED)
	locked := mapped(fd, syscall.MAP_SHARED)
	anonymous := mapped(-1, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	must(raw(syscall.SYS_MUNMAP, holed+page, page))
	must(raw(syscall.SYS_MLOCK, locked, page))
	for _, r := range []struct {
		name            string
		at, size, flags uintptr
	}{
		{"sync", shared, 3 * page, msSync},
		{"async", shared, 3 * page, msAsync},
		{"no_flags", shared, 3 * page, 0},
		{"sync_and_async", shared, page, msSync | msAsync},
		{"unaligned", shared + 1, page, msSync},
		{"unknown_flag", shared, page, msSync | 0x80},
		{"anonymous", anonymous, 3 * page, msSync},
		{"hole", holed, 3 * page, msSync},
		{"zero_length_in_hole", holed + page, 0, msSync},
		{"null_one", 0, 1, msSync},
		{"length_wraps", shared, ^uintptr(0), msSync},
		{"invalidate", shared, page, msSync | msInval},
		{"invalidate_locked", locked, page, msSync | msInval},
	} {
		result, err := raw(syscall.SYS_MSYNC, r.at, r.size, r.flags)
		cell("raw_msync", r.name, result, err, "")
	}
}

func opened(door, kind string, fd int, err error) {
	if err != nil {
		cell(door, kind, -1, err, "")
		return
	}
	flags, _ := raw(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
	sync := "none"
	if flags&syscall.O_SYNC == syscall.O_SYNC {
		sync = "O_SYNC"
	} else if flags&syscall.O_DSYNC != 0 {
		sync = "O_DSYNC"
	}
	var st syscall.Stat_t
	_ = syscall.Fstat(fd, &st)
	wrote, _ := syscall.Write(fd, []byte("x"))
	cell(door, kind, fd, nil, fmt.Sprintf("sync=%s flags=%#o mode=%#o owner=%d:%d size=%d wrote=%d",
		sync, flags&^syscall.O_SYNC, st.Mode, st.Uid, st.Gid, st.Size, wrote))
	_ = syscall.Close(fd)
}

// The os package's own open: O_CLOEXEC and O_LARGEFILE come with it.
func byOs(kind, path string, flags int) {
	file, err := os.OpenFile(path, flags, 0o640)
	if err != nil {
		opened("os.OpenFile", kind, -1, err)
		return
	}
	fd, err := syscall.Dup(int(file.Fd()))
	_ = file.Close()
	opened("os.OpenFile", kind, fd, err)
}

func opens() {
	here, err := os.Getwd()
	must(0, err)
	syscall.Umask(0o027)
	for _, asked := range []struct {
		name string
		bits int
	}{{"O_SYNC", syscall.O_SYNC}, {"O_DSYNC", syscall.O_DSYNC}, {"lone_O_SYNC_bit", loneSync}} {
		for _, c := range []struct {
			name, path string
			flags      int
		}{
			{"exists", "file", syscall.O_RDWR},
			{"creates", "new", syscall.O_RDWR | syscall.O_CREAT | syscall.O_EXCL},
			{"may_not_exist", "file", syscall.O_RDWR | syscall.O_CREAT | syscall.O_EXCL},
			{"missing", "missing", syscall.O_RDWR},
			{"directory", ".", syscall.O_RDWR},
			{"absolute", filepath.Join(here, "file"), syscall.O_WRONLY | syscall.O_APPEND},
			{"own_directory", "/proc/self/cwd/file", syscall.O_RDWR},
		} {
			kind, flags := c.name+"_"+asked.name, c.flags|asked.bits
			byOs(kind, c.path, flags)
			_ = os.Remove("new")
			fd, err := syscall.Open(c.path, flags, 0o640)
			opened("syscall.Open", kind, fd, err)
			_ = os.Remove("new")
			fd, err = syscall.Openat(atFdcwd, c.path, flags, 0o640)
			opened("syscall.Openat", kind, fd, err)
			_ = os.Remove("new")
			how := [3]uint64{uint64(flags), 0, 0}
			if flags&syscall.O_CREAT != 0 {
				how[1] = 0o640
			}
			path := append([]byte(c.path), 0)
			dir := atFdcwd
			fd, err = raw(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(&path[0])),
				uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how))
			opened("raw_openat2", kind, fd, err)
			_ = os.Remove("new")
		}
	}
}

func writes() {
	zeros := make([]byte, 8)
	piece := syscall.Iovec{Base: &zeros[0], Len: 8}
	for _, k := range kinds() {
		for _, flags := range []struct {
			name string
			bits uintptr
		}{{"dsync", rwfDsync}, {"sync", rwfSync}, {"unknown", rwfDsync | 0x40000000}} {
			position := ^uintptr(0)
			result, err := raw(sysPwritev2, uintptr(k.fd), uintptr(unsafe.Pointer(&piece)), 1, position, position, flags.bits)
			cell("raw_pwritev2_"+flags.name, k.name, result, err, "")
		}
	}
}

func main() {
	groups := map[string]func(){"descriptors": descriptors, "ranges": ranges, "opens": opens, "writes": writes}
	if len(os.Args) != 3 || groups[os.Args[1]] == nil || os.Chdir(os.Args[2]) != nil {
		os.Exit(2)
	}
	must(0, os.WriteFile("file", []byte("x"), 0o600))
	groups[os.Args[1]]()
	must(0, out.Flush())
}
