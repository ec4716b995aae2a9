package callkey_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
)

func arguments(size int) string {
	var b strings.Builder
	b.WriteString(`{"page": 1.0`)
	for i := 0; b.Len() < size-len(`, "k0000000": "lorem ipsum"`); i++ {
		fmt.Fprintf(&b, `, "k%07d": "lorem ipsum"`, (i*7919)%1000000)
	}
	b.WriteString("}")

	return b.String()
}

func BenchmarkCall(b *testing.B) {
	for name, input := range map[string]string{
		"30B":  `{"order":"A-1007","page": 1.0}`,
		"1KiB": arguments(1 << 10),
		"1MiB": arguments(1 << 20),
		"text": strings.Repeat("lorem ipsum ", 1<<20/12),
	} {
		b.Run(name, func(b *testing.B) {
			keys, tool := callkey.New(), ident.MustLabel("lookup_order")
			b.ReportAllocs()
			b.SetBytes(int64(len(input)))
			for b.Loop() {
				keys.Call(tool, input)
			}
		})
	}
}

func BenchmarkResult(b *testing.B) {
	line := "2024-05-01T10:15:02.123Z order 1007 shipped in 12 ms by 10.0.0.7:53122\n"
	for name, output := range map[string]string{
		"70B":  line,
		"1KiB": strings.Repeat(line, 1<<10/len(line)),
		"1MiB": strings.Repeat(line, 1<<20/len(line)),
	} {
		b.Run(name, func(b *testing.B) {
			keys := callkey.New()
			b.ReportAllocs()
			b.SetBytes(int64(len(output)))
			for b.Loop() {
				keys.Result(`{"order":"A-1007","page": 1.0}`, output)
			}
		})
	}
}

// BenchmarkKeyedDigest is the measurement behind the choice of the digest: a
// message of 30 bytes.
func BenchmarkKeyedDigest(b *testing.B) {
	key, message := make([]byte, 32), []byte(`{"order":"A-1007","page": 1.0}`)
	b.Run("prefix", func(b *testing.B) {
		h := sha256.New()
		var sum [sha256.Size]byte
		for b.Loop() {
			h.Reset()
			h.Write(key)
			h.Write(message)
			h.Sum(sum[:0])
		}
	})
	b.Run("hmac", func(b *testing.B) {
		h := hmac.New(sha256.New, key)
		var sum [sha256.Size]byte
		for b.Loop() {
			h.Reset()
			h.Write(message)
			h.Sum(sum[:0])
		}
	})
}
