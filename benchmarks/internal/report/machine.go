package report

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Machine is where the figures come from. It names kinds, never a host.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores"`
	Go     string `json:"go"`
}

// Version of a module that was measured.
type Version struct {
	Module  string `json:"module"`
	Version string `json:"version"`
}

// ThisMachine describes the machine of this process, as far as it says.
func ThisMachine() Machine {
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), Go: runtime.Version(),
		Kernel: firstLine("/proc/sys/kernel/osrelease"), CPU: cpuModel(),
	}
}

func firstLine(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // a constant of this file
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")

	return line
}

func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}

	return ""
}

// measured are the modules whose versions decide about the figures.
var measured = []string{ //nolint:gochecknoglobals // a constant list
	"github.com/cloudwego/eino", "github.com/failsafe-go/failsafe-go", "github.com/sony/gobreaker/v2",
	"github.com/tmc/langchaingo", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/sdk", "modernc.org/sqlite",
}

// Versions returns the versions of what was measured, as this program was built.
func Versions() []Version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var found []Version
	for _, dep := range info.Deps {
		if slices.Contains(measured, dep.Path) {
			found = append(found, Version{Module: dep.Path, Version: dep.Version})
		}
	}
	slices.SortFunc(found, func(a, b Version) int { return strings.Compare(a.Module, b.Module) })

	return found
}
