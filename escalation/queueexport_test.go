package escalation

// LimitQueue replaces MaxQueueHandoffs for one queue: a file of that length takes
// too long for a test.
func LimitQueue(q *Queue, n int) { q.limit = n }
