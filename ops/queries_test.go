package ops_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// base is the name of a metric without the suffix of a part of a histogram.
func base(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if cut, ok := strings.CutSuffix(name, suffix); ok {
			return cut
		}
	}

	return name
}

// targetLabels are those that a scrape or the collector adds.
var targetLabels = []string{"job", "instance"}

// query is one that was read, and what it reads.
type query struct {
	metrics map[string]bool
	labels  map[string]bool // that a result may have
}

// checkQuery parses expr as Prometheus does, and refuses metrics, labels and
// values of labels that are not exported.
func (e exported) checkQuery(expr string) (query, []error) {
	q := query{metrics: map[string]bool{}, labels: map[string]bool{}}
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return q, []error{err}
	}
	var errs []error
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			errs = append(errs, e.checkSelector(n)...)
			q.metrics[n.Name] = true
		case *parser.AggregateExpr:
			errs = append(errs, e.checkLabels(n, n.Grouping)...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				errs = append(errs, e.checkLabels(n, slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include))...)
			}
		case *parser.Call:
			if strings.HasPrefix(n.Func.Name, "label_") || strings.HasPrefix(n.Func.Name, "absent") {
				errs = append(errs, fmt.Errorf("%s makes labels that nobody checks", n.Func.Name))
			}
		}

		return nil
	})
	for _, l := range e.labelsOf(tree) {
		q.labels[l] = true
	}

	return q, errs
}

func (e exported) checkSelector(n *parser.VectorSelector) (errs []error) {
	known, ok := e[n.Name]
	if !ok {
		return []error{fmt.Errorf("metric %q is not exported", n.Name)}
	}
	for _, m := range n.LabelMatchers {
		if m.Name == model.MetricNameLabel || slices.Contains(targetLabels, m.Name) {
			continue
		}
		values, ok := known[m.Name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s has no label %q", n.Name, m.Name))

			continue
		}
		for _, v := range named(m) {
			if values != nil && !slices.Contains(values, v) {
				errs = append(errs, fmt.Errorf("%s: %s is never %q", n.Name, m.Name, v))
			}
		}
	}

	return errs
}

// named returns the values that a matcher names; ours are alternatives.
func named(m *labels.Matcher) []string {
	switch {
	case m.Value == "" || m.Value == ".*" || m.Value == ".+":
		return nil
	case m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual:
		return []string{m.Value}
	default:
		return strings.Split(m.Value, "|")
	}
}

// checkLabels refuses to group or match by a label that none of the metrics
// beneath has.
func (e exported) checkLabels(n parser.Node, names []string) (errs []error) {
	var known []string
	parser.Inspect(n, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			known = append(known, e.labelsOf(s)...)
		}

		return nil
	})
	for _, l := range names {
		if !slices.Contains(known, l) {
			errs = append(errs, fmt.Errorf("nothing in %s has the label %q", n, l))
		}
	}

	return errs
}

// labelsOf returns the labels that the result of an expression may have.
func (e exported) labelsOf(n parser.Node) (found []string) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		found = slices.Clone(targetLabels)
		for l := range e[n.Name] {
			found = append(found, l)
		}
	case *parser.AggregateExpr:
		if !n.Without {
			return n.Grouping
		}
		found = slices.DeleteFunc(e.labelsOf(n.Expr), func(l string) bool { return slices.Contains(n.Grouping, l) })
	case *parser.BinaryExpr:
		found = e.labelsOf(n.LHS)
		if n.Op == parser.LOR {
			found = append(found, e.labelsOf(n.RHS)...)
		}
	default:
		for c := range parser.ChildrenIter(n) {
			found = append(found, e.labelsOf(c)...)
		}
	}

	return found
}
