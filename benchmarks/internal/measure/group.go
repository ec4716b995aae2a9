package measure

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// Plan is the rows of one group. Own are those that the group reports; the rest
// are there to be compared with, and are reported by their own group.
type Plan struct {
	Name string
	Own  []string
	Rows []row.Row
}

// Groups parts rows into what is measured together: the rows whose names begin
// with the same two parts, and each growth series by itself. All rows of a group
// are kept ready at the same time, and a large heap makes fresh memory colder for
// each of them. Whatever a row is compared with, by RatioTo or by a
// target, joins its group, so that every ratio is of one run. wanted are the rows
// to report; all are where the others are looked up.
func Groups(wanted, all []row.Row, targets []row.Target) []Plan {
	byName := make(map[string]row.Row, len(all))
	for _, r := range all {
		byName[r.Name] = r
	}
	var plans []Plan
	for _, r := range wanted {
		name := family(r)
		i := slices.IndexFunc(plans, func(p Plan) bool { return p.Name == name })
		if i < 0 {
			i = len(plans)
			plans = append(plans, Plan{Name: name})
		}
		plans[i].Own = append(plans[i].Own, r.Name)
		plans[i].Rows = append(plans[i].Rows, r)
	}
	for i := range plans {
		p := &plans[i]
		for _, name := range p.Own {
			p.join(byName, byName[name].RatioTo)
			for _, t := range targets {
				if t.Row == name {
					p.join(byName, t.To)
					p.join(byName, t.Over)
				}
			}
		}
	}

	return plans
}

func family(r row.Row) string {
	if r.Series != "" {
		return string(r.Set) + "/" + r.Series
	}
	parts := strings.SplitN(r.Name, "/", 3) // two, and the rest

	return strings.Join(parts[:min(len(parts), 2)], "/")
}

func (p *Plan) join(byName map[string]row.Row, name string) {
	r, known := byName[name]
	if known && !slices.ContainsFunc(p.Rows, func(in row.Row) bool { return in.Name == name }) {
		p.Rows = append(p.Rows, r)
	}
}
