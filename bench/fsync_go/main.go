// fsync_go FILE TIMES: appends a line and fsyncs, as a Go service does that logs durably.
package main

import (
	"os"
	"strconv"
)

func main() {
	times, err := strconv.Atoi(os.Args[2])
	if err != nil {
		os.Exit(2)
	}
	file, err := os.OpenFile(os.Args[1], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		os.Exit(3)
	}
	for i := 0; i < times; i++ {
		if _, err := file.WriteString("a line of some sixty bytes, as a service writes into its log\n"); err != nil {
			os.Exit(4)
		}
		if err := file.Sync(); err != nil {
			os.Exit(5)
		}
	}
}
