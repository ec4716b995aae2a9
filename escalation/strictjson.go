package escalation

import (
	"bytes"
	"encoding/json"
)

// readObject reads one JSON object and returns its raw fields. encoding/json
// itself would take the last of two equal names, names without regard to case,
// and would not look at what follows.
func readObject(data []byte, known func(name string) bool) (map[string]json.RawMessage, Defect) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, DefectMalformed
	}
	fields := make(map[string]json.RawMessage)
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, DefectMalformed
		}
		if !known(name) {
			return nil, DefectUnknownField
		}
		if _, seen := fields[name]; seen {
			return nil, DefectDuplicateField
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, DefectMalformed
		}
		fields[name] = raw
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('}') {
		return nil, DefectMalformed
	}
	if dec.InputOffset() != int64(len(data)) {
		return nil, DefectTrailingData
	}

	return fields, 0
}

func readText(raw json.RawMessage, to *string) bool {
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, to) == nil
}

func readList(raw json.RawMessage, to *[]string) bool {
	return len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, to) == nil
}
