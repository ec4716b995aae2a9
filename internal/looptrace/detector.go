package looptrace

import (
	"errors"

	"github.com/interlock-go/interlock/watchdog"
)

// Detector is a loop detector of the watchdog. The zero value is invalid.
type Detector uint8

// The detectors.
const (
	_ Detector = iota
	Repeat
	Progress

	detectorEnd
)

var detectorNames = [detectorEnd]string{"invalid", Repeat: "repeat", Progress: "progress"} //nolint:gochecknoglobals // compiled table

// String returns the detector's name, or "invalid".
func (d Detector) String() string {
	if d >= detectorEnd {
		return detectorNames[0]
	}

	return detectorNames[d]
}

// Detectors returns the closed set.
func Detectors() []Detector { return []Detector{Repeat, Progress} }

// ParseDetector returns the detector with this name.
func ParseDetector(name string) (Detector, bool) {
	for _, d := range Detectors() {
		if d.String() == name {
			return d, true
		}
	}

	return 0, false
}

// ErrDetector is the error of a replay with an unknown detector.
var ErrDetector = errors.New("looptrace: unknown detector")

func (d Detector) config() (watchdog.Config, error) {
	cfg := watchdog.Config{DisableStall: true}
	switch d {
	case Repeat:
		cfg.Loop = watchdog.LoopRepeat
	case Progress:
		cfg.Loop = watchdog.LoopProgress
	default:
		return cfg, ErrDetector
	}

	return cfg, nil
}
