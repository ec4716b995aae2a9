package ident_test

import (
	"fmt"

	"github.com/interlock-go/interlock/ident"
)

func ExampleParseWorkflowID() {
	id, err := ident.ParseWorkflowID("workflow:org.example/refunds@1.0.0")
	fmt.Println(id, err)

	_, err = ident.ParseWorkflowID("tool:org.example/refunds")
	fmt.Println(err)
	fmt.Printf("%#v\n", id)
	// Output:
	// workflow:org.example/refunds@1.0.0 <nil>
	// ident: wrong_kind
	// ident.WorkflowID(redacted)
}
