package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/internal/cli"
)

// operatorEnv makes this program the operator's command line: in the act "stop"
// it executes itself, as another process that only shares the files.
const operatorEnv = "INTERLOCK_EXAMPLE_OPERATOR"

func isOperator() bool { return os.Getenv(operatorEnv) != "" }

func operate(args []string) int { return cli.Run(args, os.Stdin, os.Stdout, os.Stderr) }

// ledgerFiles are where the act keeps the ledger. In the field the anchor lies
// on storage that no restore of the ledger touches.
type ledgerFiles struct{ ledger, anchor, key string }

func (s *stack) openLedger(ctx context.Context) error {
	s.ledger = ledgerFiles{
		ledger: filepath.Join(s.dir, "ledger.db"), anchor: filepath.Join(s.dir, "anchor.db"), key: filepath.Join(s.dir, "key"),
	}
	if err := admission.GenerateKeyFile(s.ledger.key); err != nil {
		return err //nolint:wrapcheck // content-free
	}
	key, err := admission.LoadKeyFile(s.ledger.key)
	if err != nil {
		return err //nolint:wrapcheck // content-free
	}
	cfg := admission.StoreConfig{Ledger: s.ledger.ledger, Anchor: s.ledger.anchor, Key: key}
	if _, err := admission.Initialize(ctx, cfg); err != nil {
		return err //nolint:wrapcheck // content-free
	}
	store, err := admission.OpenStore(ctx, cfg)
	if err != nil {
		return err //nolint:wrapcheck // content-free
	}
	s.store = store
	s.closers = append(s.closers, store.Close)

	return nil
}

// operator runs one operator command in another process and waits for it.
func (s *stack) operator(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // this program itself, with constant arguments
	cmd.Env = append(os.Environ(), operatorEnv+"=1",
		"INTERLOCK_STATE="+s.ledger.ledger, "INTERLOCK_ANCHOR="+s.ledger.anchor, "INTERLOCK_KEY_FILE="+s.ledger.key)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Run(); err != nil {
		return errors.Join(errors.New("the operator's command failed"), err)
	}

	return nil
}
