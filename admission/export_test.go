package admission

import "time"

// VerifyEvery is how often everything is verified again.
const VerifyEvery time.Duration = verifyEvery

// UseDataVersion makes s detect changes as systems other than Linux do.
func UseDataVersion(s *SQLiteStore) { s.detect = versionDetector{} }

// Verified reports whether s would answer from what it has verified: nothing has
// changed that the check without a lock goes by.
func Verified(s *SQLiteStore) bool {
	snap := s.last.Load()

	return snap != nil && s.detect.peek(snap)
}

// KeptDescriptors returns how many descriptors are kept open for the sake of
// locks, also those in use.
func KeptDescriptors() int {
	held.mu.Lock()
	defer held.mu.Unlock()

	return len(held.kept)
}
