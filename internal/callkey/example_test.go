package callkey_test

import (
	"fmt"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
)

func ExampleNew() {
	keys, tool := callkey.New(), ident.MustLabel("lookup_order")
	a := keys.Call(tool, `{"id": 7, "page": 1.0}`)
	b := keys.Call(tool, `{"page":1,"id":7}`)
	fmt.Println(a == b, a)
	// Output: true callkey.Key(redacted)
}

func ExampleKeyer_Result() {
	keys := callkey.New()
	before := keys.Result(`{"id":7}`, "order 7 shipped at 10:15:02")
	after := keys.Result(`{"id":7}`, "order 7 shipped at 10:16:40")
	other := keys.Result(`{"id":7}`, "order 7 lost at 10:16:40")
	fmt.Println(before == after, before == other)
	// Output: true false
}
