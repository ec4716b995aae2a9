//go:build !linux

package cli_test

func limitFileSize() {}

func hold(string, string) {}
