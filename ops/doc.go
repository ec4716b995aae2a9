// Package ops holds what an operator looks at, and proves that it fits what the
// library exports:
//
//   - alerts.yaml, rules for Prometheus, and alerts_test.yaml, series on which each
//     of them fires and others on which it is silent, in the form that promtool
//     reads too (promtool test rules ops/alerts_test.yaml);
//   - dashboard.json, a dashboard to import into Grafana.
//
// There is no code to import. The tests run the real telemetry through
// OpenTelemetry's exporter for Prometheus, take names, labels and values from
// that scrape, and refuse a rule, a panel or a test series that names anything
// else; Prometheus's own parser and rule engine read and evaluate them.
// docs/operations.md says what to do for every alert.
//
// It is a module of its own because Prometheus is a large dependency that
// nobody who imports the library should carry.
package ops
