// Dynamic, with C in it (cgo): the C library is loaded, and Go makes its own system calls all the same. Opens the file named
// by the first argument, writes, fsyncs by os.File.Sync.
package main

/*
#include <stdlib.h>

static int of_c(void) { return abs(-1); }
*/
import "C"

import (
	"fmt"
	"os"
)

func run() error {
	if C.of_c() != 1 {
		return fmt.Errorf("C went wrong")
	}
	file, err := os.OpenFile(os.Args[1], os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err = file.WriteString("x"); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
