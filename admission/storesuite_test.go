package admission_test

import (
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/admission/storetest"
)

// TestStores runs one suite against each store.
func TestStores(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, storetest.Suite{
			New:   func(t *testing.T) admission.Store { t.Helper(); return newMemoryStore(t) },
			Again: func(_ *testing.T, s admission.Store) admission.Store { return s },
		})
	})
	for name, versions := range map[string]bool{"headers": false, "data_version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, storetest.Suite{
				New: func(t *testing.T) admission.Store {
					t.Helper()
					d := newStore(t)
					d.versions = versions

					return onDisk{d.open(t), d}
				},
				Again: func(t *testing.T, s admission.Store) admission.Store {
					t.Helper()

					return s.(onDisk).disk.open(t)
				},
			})
		})
	}
}

// onDisk is a store that knows where it is.
type onDisk struct {
	*admission.SQLiteStore

	disk *disk
}
