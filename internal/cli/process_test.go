//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/cli"
)

const (
	nobody    = 65534
	sizeLimit = "INTERLOCK_TEST_FILE_SIZE"
)

// limitFileSize makes a full disk of a variable in the environment.
func limitFileSize() {
	if n, err := strconv.ParseUint(os.Getenv(sizeLimit), 10, 63); err == nil {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			panic(err)
		}
	}
}

// hold is a program that keeps a database locked until its input ends.
func hold(path, begin string) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	for _, statement := range []string{begin, "SELECT count(*) FROM sqlite_schema"} {
		if _, err := db.Exec(statement); err != nil {
			panic(err)
		}
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = db.Close()
}

// process runs a command as a program of its own: this one, by another name.
// Through /proc it can be executed by a user who cannot reach it by its path.
func process(ctx context.Context, p place, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{"interlock"}, args...)
	cmd.Dir = "/"
	cmd.Env = os.Environ()
	for name, value := range p.env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}

	return cmd
}

// asNobody makes cmd run as a user without rights, if this one has any to give
// away.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	r := result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	if err := json.Unmarshal([]byte(r.stdout+r.stderr), &r.object); err != nil {
		t.Errorf("%v: not one object: %q", cmd.Args, r.stdout+r.stderr)
	}
	if strings.Contains(strings.ToLower(r.stdout+r.stderr), "canary") {
		t.Errorf("%v: %q", cmd.Args, r.stdout+r.stderr)
	}

	return r
}

// openPlace is a place that every user can reach, but only this one can write.
func openPlace(t *testing.T) place {
	t.Helper()
	p := newPlace(t)
	for dir := p.dir; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&os.ModeSticky != 0 || dir == filepath.Clean(os.TempDir()) {
			break
		}
		must(t, os.Chmod(dir, 0o755))
	}

	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func give(t *testing.T, paths ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, path := range paths {
		must(t, os.Chown(path, nobody, nobody))
	}
}

// TestAnotherUser: a key that this user cannot read, and one that it can.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	p := openPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "init").want(t, 0, "admission_disabled")
	if os.Geteuid() != 0 {
		must(t, os.Chmod(p.key, 0))
	}
	for _, args := range [][]string{{"status"}, {"stop"}, {"resume"}, {"verify"}, {"log"}, {"watch"}, {"init"}} {
		cmd := process(t.Context(), p, args...)
		asNobody(cmd)
		if r := finish(t, cmd).want(t, 1, "unreadable_key"); r.stdout != "" {
			t.Error(r)
		}
	}
	// The same, once everything is that user's.
	must(t, os.Chmod(p.key, 0o600))
	give(t, p.key, p.state, p.anchor, p.dir)
	cmd := process(t.Context(), p, "stop")
	asNobody(cmd)
	finish(t, cmd).want(t, 0, "admission_stopped")
}

// TestReadOnlyFolder: what can be read can be read, and nothing else.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	p := openPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "resume", "--initialize").want(t, 0, "admission_enabled")
	give(t, p.key, p.state, p.anchor)
	must(t, os.Chmod(p.dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(p.dir, 0o700) })
	before := contents(t, p.dir)
	for _, tc := range [][3]string{
		{"status", "0", "admission_enabled"}, {"verify", "0", "ok"}, {"stop", "1", "store_failed"},
		{"resume", "1", "store_failed"}, {"init", "1", "already_initialized"},
	} {
		cmd := process(t.Context(), p, tc[0])
		asNobody(cmd)
		code, _ := strconv.Atoi(tc[1])
		finish(t, cmd).want(t, code, tc[2])
	}
	p2 := p
	p2.state, p2.anchor = filepath.Join(p.dir, "canary-new"), filepath.Join(p.dir, "canary-newer")
	cmd := process(t.Context(), p2, "init")
	asNobody(cmd)
	finish(t, cmd).want(t, 1, "store_failed")
	if after := contents(t, p.dir); after != before {
		t.Error("something changed")
	}
}

// contents is what a folder holds, byte for byte. A name of a super-journal that
// SQLite forgets after a failed commit is harmless, and does not count.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var b strings.Builder
	for _, e := range entries {
		if strings.Contains(e.Name(), "-mj") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		fmt.Fprintf(&b, "%s %x\n", e.Name(), data)
	}

	return b.String()
}

// TestFullDisk: at every limit the answer is that of what happened, and what
// was there is there.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "resume", "--initialize").want(t, 0, "admission_enabled")
	generation, failed := float64(2), 0
	for _, limit := range []int{0, 1, 511, 512, 600, 4096, 4700, 8000, 8192, 8300, 9000, 1 << 20} {
		before := contents(t, p.dir)
		cmd := process(t.Context(), p, "stop")
		cmd.Env = append(cmd.Env, sizeLimit+"="+strconv.Itoa(limit))
		r := finish(t, cmd)
		if r.code == 0 {
			generation++
			r.want(t, 0, "admission_stopped")
		} else {
			failed++
			if r.want(t, 1, "store_failed"); r.object["admission"] != "may_still_be_open" {
				t.Error(r)
			}
			if after := contents(t, p.dir); after != before {
				t.Errorf("limit %d: something changed", limit)
			}
		}
		if r := run(t, p.env(), "verify").want(t, 0, "ok"); r.object["generation"] != generation {
			t.Errorf("limit %d: %v", limit, r)
		}
	}
	if failed < 3 || generation < 3 {
		t.Errorf("%d failed, generation %v", failed, generation)
	}
	other := newPlace(t)
	run(t, other.env(), "keygen").want(t, 0, "ok")
	before := contents(t, other.dir)
	for _, limit := range []int{0, 100, 4096, 4700, 8000} {
		for _, command := range [][]string{{"init"}, {"resume", "--initialize"}} {
			cmd := process(t.Context(), other, command...)
			cmd.Env = append(cmd.Env, sizeLimit+"="+strconv.Itoa(limit))
			finish(t, cmd).want(t, 1, "store_failed")
		}
	}
	other.key = filepath.Join(other.dir, "canary-other-key")
	cmd := process(t.Context(), other, "keygen")
	cmd.Env = append(cmd.Env, sizeLimit+"=7")
	finish(t, cmd).want(t, 1, "store_failed")
	if after := contents(t, other.dir); after != before {
		t.Error("something is left behind")
	}
}

// locked starts a process that holds a lock on a file, and returns what ends it.
func locked(t *testing.T, path, begin string) (release func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args = []string{"hold", path, begin}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}

	return func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
}

// TestLockedStore: another process holds one of the files. Within the timeout
// the answer is store_busy, and nothing changed.
func TestLockedStore(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"} {
		t.Run(begin, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			run(t, p.env(), "keygen").want(t, 0, "ok")
			run(t, p.env(), "resume", "--initialize").want(t, 0, "admission_enabled")
			before := contents(t, p.dir)
			for _, path := range []string{p.state, p.anchor} {
				release := locked(t, path, begin)
				commands := []string{"stop", "resume"}
				if begin == "BEGIN EXCLUSIVE" {
					commands = append(commands, "status", "verify", "log", "watch")
				}
				for _, command := range commands {
					began := time.Now()
					r := finish(t, process(t.Context(), p, command, "--timeout", "400ms")).want(t, 1, "store_busy")
					if took := time.Since(began); took > 5*time.Second || r.stdout != "" {
						t.Errorf("%s: %v after %v", command, r, took)
					}
					if got := r.object["admission"]; (command == "stop") != (got == "may_still_be_open") {
						t.Errorf("%s: %v", command, r)
					}
				}
				if begin != "BEGIN EXCLUSIVE" {
					finish(t, process(t.Context(), p, "status")).want(t, 0, "admission_enabled")
				}
				release()
				if after := contents(t, p.dir); after != before {
					t.Error("something changed")
				}
			}
			finish(t, process(t.Context(), p, "stop")).want(t, 0, "admission_stopped")
		})
	}
}

// TestInterrupt: watch ends when it is told to, and well.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := newPlace(t)
		run(t, p.env(), "keygen").want(t, 0, "ok")
		run(t, p.env(), "init").want(t, 0, "admission_disabled")
		cmd := process(t.Context(), p, "watch")
		stdout, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewReader(stdout)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "admission_disabled") {
			t.Fatalf("%q, %v", line, err)
		}
		must(t, cmd.Process.Signal(sig))
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
	}
}

// TestForcedStop: a process reads the ledger for ever. A stop cannot be
// recorded, and a forced one stops every process all the same.
func TestForcedStop(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "resume", "--initialize").want(t, 0, "admission_enabled")
	if r := finish(t, process(t.Context(), p, "stop", "--force", "--scope", "workflow:org.example/refunds")).want(t, 0, "admission_stopped"); r.object["generation"] != float64(3) {
		t.Errorf("nobody was in the way: %v", r)
	}
	release := locked(t, p.state, "BEGIN")
	defer release()
	watcher := watch(t, p)
	watcher.want(t, "global", "admission_enabled", 3)
	if r := finish(t, process(t.Context(), p, "stop", "--timeout", "300ms")).want(t, 1, "store_busy"); r.object["admission"] != "may_still_be_open" {
		t.Error(r)
	}
	finish(t, process(t.Context(), p, "status")).want(t, 0, "admission_enabled")
	r := finish(t, process(t.Context(), p, "stop", "--force", "--timeout", "300ms")).want(t, 0, "untrusted_state")
	if r.stderr != "" || r.object["generation"] != float64(3) || r.object["receipt_digest"] != "sha256:"+strings.Repeat("0", 64) || len(r.object) != 4 {
		t.Error(r)
	}
	for _, command := range []string{"status", "stop", "resume", "verify", "log"} {
		finish(t, process(t.Context(), p, command, "--timeout", "300ms")).want(t, 1, "untrusted_state")
	}
	finish(t, process(t.Context(), p, "resume", "--initialize")).want(t, 1, "already_initialized")
	finish(t, process(t.Context(), p, "stop", "--force", "--timeout", "300ms")).want(t, 1, "untrusted_state")
	watcher.want(t, "global", "untrusted_state", 3)
	watcher.end(t, 1)

	release()
	must(t, os.Rename(p.anchor+".stopped", p.anchor))
	finish(t, process(t.Context(), p, "status")).want(t, 0, "admission_enabled")
	finish(t, process(t.Context(), p, "stop")).want(t, 0, "admission_stopped")
}

// TestRacingResumes: an enable is based on what was read. Somebody who recorded
// something in between makes it stale_generation.
func TestRacingResumes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "init").want(t, 0, "admission_disabled")
	const racers, rounds = 6, 40
	for range rounds {
		codes := make(chan any, racers)
		for range racers {
			go func() {
				var stdout, stderr bytes.Buffer
				_ = cli.RunEnv([]string{"resume"}, nil, &stdout, &stderr, func(n string) string { return p.env()[n] })
				var object map[string]any
				_ = json.Unmarshal(append(stdout.Bytes(), stderr.Bytes()...), &object)
				codes <- object["reason_code"]
			}()
		}
		stale := 0
		for range racers {
			switch code := <-codes; code {
			case "stale_generation":
				stale++
			case "admission_enabled":
			default:
				t.Fatalf("%v", code)
			}
		}
		if stale > 0 {
			return
		}
	}
	t.Error("nobody was too late")
}
