// Command interlock stops, resumes and inspects the effects of agents on this
// host, and shows what waits for a human.
package main

import (
	"os"

	"github.com/interlock-go/interlock/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
