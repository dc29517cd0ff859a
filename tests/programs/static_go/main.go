// Opens the file named by the first argument, writes, fsyncs by os.File.Sync. Go makes its own system calls, static or not.
package main

import (
	"fmt"
	"os"
)

func run() error {
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
