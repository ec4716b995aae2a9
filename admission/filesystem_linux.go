package admission

import "golang.org/x/sys/unix"

// Magic numbers that golang.org/x/sys/unix does not name.
const (
	magicBeeGFS   = 0x19830326
	magicCIFS     = 0xff534d42
	magicGFS2     = 0x01161970
	magicGPFS     = 0x47504653
	magicLustre   = 0x0bd00bd0
	magicOrangeFS = 0x20030528
	magicVBox     = 0x786f4256
)

// checkFileSystem refuses file systems on which another host can write, or on
// which locks and syncs are somebody's program: neither an atomic commit nor a
// check is then what it seems.
func checkFileSystem(folder string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return err
	}
	switch uint32(stat.Type) { //nolint:gosec // magic numbers have 32 bits
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, magicCIFS, unix.FUSE_SUPER_MAGIC,
		unix.CODA_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.NCP_SUPER_MAGIC, unix.V9FS_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC, magicBeeGFS, magicGFS2, magicGPFS, magicLustre, magicOrangeFS, magicVBox:
		return errSystem
	}

	return nil
}
