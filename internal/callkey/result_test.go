package callkey_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/callkey"
)

const hex40 = "da39a3ee5e6b4b0d3255bfef95601890afd80709"

func TestResultEqual(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ input, a, b string }{
		"date":               {"", "on 2024-05-01 done", "on 2025-11-30 done"},
		"date and clock":     {"", "[2024-05-01T10:00:00Z] ready", "[2024-05-02T23:59:60.123456+02:00] ready"},
		"date space clock":   {"", "2024-05-01 10:00:00,123 INFO up", "2024-05-02 11:10:20,999 INFO up"},
		"date with slashes":  {"", "since 2024/05/01.", "since 2023/12/31."},
		"date european":      {"", "am 01.05.2024 um 10:15", "am 31.12.2023 um 23:59"},
		"date american":      {"", "on 05/01/2024", "on 12/31/2023"},
		"date in a path":     {"", "wrote log-2024-05-01.txt", "wrote log-2024-05-02.txt"},
		"date RFC 1123":      {"", "Date: Mon, 02 Jan 2006 15:04:05 GMT", "Date: Sunday, 31 December 2023 01:00:00 GMT"},
		"date ANSI C":        {"", "Mon Jan 2 15:04:05 2006", "Tue Dec 31 23:59:59 2006"},
		"date syslog":        {"", "May  1 10:00:00 host app: up", "Dec 31 23:59:59 host app: up"},
		"date US words":      {"", "as of January 2, 2006", "as of Dec 31, 2023"},
		"date web log":       {"", `- [10/Oct/2000:13:55:36 -0700] "GET /"`, `- [11/Nov/2001:14:56:37 -0700] "GET /"`},
		"date dashes":        {"", "built 2-Jan-2006 here", "built 31-Dec-2023 here"},
		"clock":              {"", "10:15:02: refused", "23:59:59: refused"},
		"clock fraction":     {"", "at 10:15:02.1 x", "at 10:15:02.987654321 x"},
		"clock am":           {"", "at 9:15 am now", "at 11:30 PM now"},
		"clock in JSON":      {"", `{"at":"10:15"}`, `{"at":"09:00"}`},
		"clock offset":       {"", "10:15:02-0700 x", "11:15:02+0530 x"},
		"clock T":            {"", "T10:15:02Z x", "T11:16:03Z x"},
		"uuid":               {"", "id=7f3b0c1e-1111-4a4a-9b9b-0123456789ab.", "id=00000000-2222-4A4A-8B8B-ABCDEF012345."},
		"hex":                {"", "etag " + hex40, "etag " + strings.ToUpper(hex40[1:])},
		"hex of 16":          {"", "req_0123456789abcdef failed", "req_f123456789abcdef failed"},
		"pointer":            {"", "<Order at 0x7f3a2c1d5e80>", "<Order at 0xC000123456>"},
		"address":            {"", "dial 10.0.0.7:53122: refused", "dial 192.168.1.255:80: refused"},
		"address v6":         {"", "dial [fe80::1%eth0]:53122: refused", "dial [::1]:80: refused"},
		"duration":           {"", "took 12ms", "took 1.5s"},
		"duration go":        {"", "ran 1h2m3.5s (cached)", "ran 250µs (cached)"},
		"duration words":     {"", "in 3 seconds, retry", "in 1,234.5 milliseconds, retry"},
		"duration age":       {"", "pod-a Running 5m", "pod-a Running 2d"},
		"duration both":      {"", "elapsed=7ms", "elapsed=12 ms"},
		"weeks":              {"", "updated 2 weeks ago", "updated 1 hour ago"},
		"spaces":             {"", "a   b\t\tc ", "a b c"},
		"line ends":          {"", "a\r\nb\r\n", "a\nb"},
		"empty lines":        {"", "\n\na\n\nb\n", "a\nb"},
		"order of lines":     {"", "c\na\nb", "a\nb\nc"},
		"order with clocks":  {"", "10:00:01 up\n10:00:02 down", "11:00:05 down\n11:00:07 up"},
		"aligned":            {"", "time   9ms ok", "time 100ms ok"},
		"nothing":            {"", "", "\n \n"},
		"temporary file":     {"", "open '/tmp/run-qPz7.png'", "open '/tmp/run-Lm3x.png'"},
		"temporary folder":   {"", "/tmp/tmpab12x_z/a.txt", "/tmp/tmpqq_z/a.txt"},
		"temporary number":   {"", "in /tmp/go-build123456789/b001", "in /tmp/go-build987654321/b001"},
		"clock and argument": {`{"id":12}`, "failed at 09:12:00", "failed at 09:13:00"},
		"date and argument":  {`{"id":"12"}`, "failed on 2024-05-12", "failed on 2024-05-13"},
		"time and argument":  {`{"id":12}`, "took 12 ms", "took 13 ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := callkey.New()
			if keys.Result(tc.input, tc.a) != keys.Result(tc.input, tc.b) {
				t.Errorf("%q and %q differ: %q, %q", tc.a, tc.b, keys.CleanLine(tc.input, tc.a), keys.CleanLine(tc.input, tc.b))
			}
		})
	}
}

func TestResultDifferent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ input, a, b string }{
		"count":              {"", "found 3 rows", "found 4 rows"},
		"measured":           {"", "18.5 °C", "18.6 °C"},
		"long number":        {"", "1234567890123456", "1234567890123457"},
		"commit":             {"", "HEAD is now at 1a2b3c4", "HEAD is now at 1a2b3c5"},
		"hex of 15":          {"", "0123456789abcde", "f123456789abcde"},
		"place in a file":    {"", "main.go:10:45: undefined", "main.go:11:45: undefined"},
		"place alone":        {"", "10:45: undefined", "11:45: undefined"},
		"ratio":              {"", "won 3:10", "won 4:10"},
		"seconds since 1970": {"", `{"ts":1719930000}`, `{"ts":1719930001}`},
		"unit in the name":   {"", `{"elapsed_ms":7}`, `{"elapsed_ms":8}`},
		"version":            {"", "v1.2.3", "v1.2.4"},
		"version of four":    {"", "1.2.3.4", "1.2.3.5"},
		"address alone":      {"", "A 10.0.0.7", "A 10.0.0.8"},
		"small hex":          {"", "flags 0x1f", "flags 0x2f"},
		"money":              {"", "$5m", "$6m"},
		"length":             {"", "3 m", "4 m"},
		"name with a number": {"", "test_10s", "test_11s"},
		"model":              {"", "a 3d-model", "a 4d-model"},
		"not a date":         {"", "2024-13-01", "2024-14-01"},
		"not a clock":        {"", "at 25:10:00", "at 26:10:00"},
		"part of a date":     {"", "id 2024-05", "id 2024-06"},
		"month alone":        {"", "in January", "in February"},
		"line more":          {"", "a\nb", "a\nb\nc"},
		"line twice":         {"", "a\nb", "a\nb\nb"},
		"lines are lines":    {"", "a b", "a\nb"},
		"words in a line":    {"", "a b", "b a"},
		"volatile or not":    {"", "took 5ms", "took"},
		"a name in /tmp":     {"", "/tmp/notes.txt", "/tmp/names.txt"},
		"random elsewhere":   {"", "code qPz7", "code Lm3x"},
		"argument or other":  {`{"id":7}`, "order 7", "order 8"},
		"which argument":     {`{"from":3,"to":7}`, "winner is 3", "winner is 7"},
		"in a longer number": {`{"n":7}`, "77 and 7.5", "87 and 8.5"},
		"in a longer word":   {`{"n":"cat"}`, "category", "dogegory"},
		"short string":       {`{"n":"ab"}`, "ab x", "ac x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := callkey.New()
			if keys.Result(tc.input, tc.a) == keys.Result(tc.input, tc.b) {
				t.Errorf("%q and %q have one signature: %q", tc.a, tc.b, keys.CleanLine(tc.input, tc.a))
			}
		})
	}
}

// TestResultOwnArguments compares results of different calls: each is read
// without its own arguments.
func TestResultOwnArguments(t *testing.T) {
	t.Parallel()
	type answer struct{ input, output string }
	for name, tc := range map[string]struct {
		a, b answer
		same bool
	}{
		"text": {answer{"Oslo", "no weather for Oslo."}, answer{"Bergen", "no weather for Bergen."}, true},
		"string": {answer{`{"path":"/a/b.txt"}`, "open /a/b.txt: no such file"},
			answer{`{"path":"/c.txt"}`, "open /c.txt: no such file"}, true},
		"number":    {answer{`{"page":3}`, "page 3 is past the end"}, answer{`{"page":4}`, "page 4 is past the end"}, true},
		"spellings": {answer{`{"id":7}`, "order 7 of 8"}, answer{`{"id":7.0}`, "order 7 of 8"}, true},
		"exponent":  {answer{`{"id":7}`, "order 7"}, answer{`{"id":70e-1}`, "order 7"}, true},
		"spelled":   {answer{`{"n":1.50}`, "got 1.50"}, answer{`{"n":2.5}`, "got 2.5"}, true},
		"nested":    {answer{`{"a":[{"b":"first"}]}`, "first: no"}, answer{`{"a":[{"b":"second"}]}`, "second: no"}, true},
		"escaped":   {answer{`{"q":"caf\u00e9 x"}`, "café x: no"}, answer{`{"q":"bar"}`, "bar: no"}, true},
		"longest":   {answer{`{"a":"abc","b":"abc def"}`, "abc def: no"}, answer{`{"a":"uvw","b":"uvw xyz"}`, "uvw xyz: no"}, true},
		"order":     {answer{`{"x":3,"y":4}`, "3 of 4"}, answer{`{"y":6,"x":5}`, "5 of 6"}, true},
		"twice":     {answer{`["aaa"]`, "aaa, aaa"}, answer{`["bbb"]`, "bbb, bbb"}, true},
		"other":     {answer{"Oslo", "no weather for Bergen"}, answer{"Bergen", "no weather for Oslo"}, false},
		"news":      {answer{`{"id":7}`, "order 7: sent"}, answer{`{"id":8}`, "order 8: lost"}, false},
		"control":   {answer{`{"q":"one\ntwo"}`, "one"}, answer{`{"q":"six\nten"}`, "six"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := callkey.New()
			same := keys.Result(tc.a.input, tc.a.output) == keys.Result(tc.b.input, tc.b.output)
			if same != tc.same {
				t.Errorf("equal: %v, want %v: %q, %q", same, tc.same,
					keys.CleanLine(tc.a.input, tc.a.output), keys.CleanLine(tc.b.input, tc.b.output))
			}
		})
	}
}

// TestResultBounds shows what of the arguments and of long results is seen.
func TestResultBounds(t *testing.T) {
	t.Parallel()
	keys := callkey.New()
	long := strings.Repeat("line\n", callkey.MaxResult/5+1)
	if keys.Result("", long) == keys.Result("", "new\n"+long) || keys.Result("", long) == keys.Result("", long+"new\n") {
		t.Error("news at an end of a long result is not seen")
	}
	half := strings.Repeat("x", callkey.MaxResult/2)
	if keys.Result("", half+"1"+half) != keys.Result("", half+"2"+half) {
		t.Error("the middle of a long result is seen: the bound does not hold")
	}
	values := `["aaa","bbb","ccc","ddd","eee","fff","ggg","hhh","iii","jjj","kkk","lll","mmm","nnn","ooo","ppp",`
	if got := keys.CleanLine(values+`"qqq"]`, "ppp qqq"); got != "\x1d qqq" {
		t.Errorf("the 16th value counts and the 17th does not: got %q", got)
	}
	text := strings.Repeat("y", 512)
	if got := keys.CleanLine(`"`+text+`"`, text); got != "\x0e" {
		t.Errorf("a value of 512 bytes: got %d bytes", len(got))
	}
	if got := keys.CleanLine(`"`+text+`y"`, text+"y"); got != text+"y" {
		t.Error("a value of 513 bytes was left out")
	}
	var many []string
	for c := 'a'; c <= 'i'; c++ {
		many = append(many, strings.Repeat(string(c), 512))
	}
	if got := keys.CleanLine(`["`+strings.Join(many, `","`)+`"]`, strings.Repeat("h", 512)+" "+strings.Repeat("i", 512)); got != "\x15 "+strings.Repeat("i", 512) {
		t.Error("more than 4 KiB of values are looked for")
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"7": "7", "7.0": "7", "70e-1": "7", "0.7e1": "7", "-7.50": "-7.5", "0": "0", "-0": "0", "-0.0": "0", "0.0e5": "0",
		"1e3": "1000", "12.5e1": "125", "5e-3": "0.005", "123456789012345678901234567890123": "123456789012345678901234567890123", "-0.05": "-0.05", "100": "100", "1.20e2": "120", "0.5": "0.5",
		"1e40": "", "1e-40": "", "1e999999999999999999999": "",
	} {
		if got := callkey.Plain(raw); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
