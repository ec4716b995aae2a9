//go:build !unix

package cli

// restrictNewFiles: where there is no umask, the folder's access list decides.
func restrictNewFiles() {}
