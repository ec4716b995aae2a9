package watchdog

// Loop says which rule the loop detector goes by. The zero value is
// LoopProgress.
type Loop uint8

// The loop detectors.
const (
	// LoopProgress asks whether anything changes that the task can use.
	LoopProgress Loop = iota
	// LoopRepeat asks whether a call is equal to earlier ones.
	LoopRepeat

	loopEnd
)

var loopNames = [loopEnd]string{LoopProgress: "progress", LoopRepeat: "repeat"} //nolint:gochecknoglobals // compiled table

// String returns the detector's name, or "invalid".
func (l Loop) String() string {
	if l >= loopEnd {
		return actionNames[0]
	}

	return loopNames[l]
}

// Loops returns the closed set, for tables and tests.
func Loops() []Loop { return []Loop{LoopProgress, LoopRepeat} }
