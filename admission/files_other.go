//go:build !unix

package admission

import "os"

const openFlags = 0

// Where files have no owner and mode in the sense of Unix, the kind of a file
// is all that is verified. Access control is then the administrator's.

func trustedFolder(os.FileInfo, bool) bool { return true }

func trustedFile(os.FileInfo) bool { return true }

func secret(os.FileInfo) bool { return true }

// syncFolder: folders cannot be synced everywhere.
func syncFolder(string) error { return nil }
