package middleware

import (
	"context"

	"github.com/interlock-go/interlock/ident"
)

// Preview says under which authority a run may have effects: it was taken for
// one workflow, at one generation of the admission ledger, whose receipt has
// one digest. Its zero value is refused by every gate. A Preview grants
// nothing: the gate compares it with the current head at each effect.
type Preview struct {
	workflow   ident.WorkflowID
	generation uint64
	digest     ident.Digest
}

// NewPreview returns the preview of workflow at a generation with this receipt.
// Admission makes them; a made-up one is refused, because the digest is that of
// a signed receipt.
func NewPreview(workflow ident.WorkflowID, generation uint64, digest ident.Digest) Preview {
	return Preview{workflow: workflow, generation: generation, digest: digest}
}

// IsZero reports whether p is the zero value.
func (p Preview) IsZero() bool { return p == Preview{} }

// Workflow returns the workflow that p was taken for.
func (p Preview) Workflow() ident.WorkflowID { return p.workflow }

// Generation returns the ledger's generation.
func (p Preview) Generation() uint64 { return p.generation }

// Digest returns the digest of the receipt of that generation.
func (p Preview) Digest() ident.Digest { return p.digest }

// Previewer takes previews. The admission controller implements it. For a
// workflow that may not act it returns the code as error.
type Previewer interface {
	Preview(ctx context.Context, workflow ident.WorkflowID) (Preview, error)
}
