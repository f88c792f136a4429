// Package dashboards reads the Grafana dashboard and the alert rules of the charts, so that tests can ask whether the agents
// serve every metric that these use.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Query is an expression and where it is used.
type Query struct{ Where, Expression string }

// board is what is read of a dashboard.
type board struct {
	Panels []struct {
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// ruleFile is what is read of alert rules.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `json:"alert"`
			Record      string            `json:"record"`
			Expr        string            `json:"expr"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

// Queries returns all queries of the dashboard and the alert rules in the folder of charts.
func Queries(charts string) ([]Query, error) {
	content, err := os.ReadFile(filepath.Join(charts, "hub-agent", "monitoring", "fleetflow.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the dashboard: %w", err)
	}
	var b board
	if err := json.Unmarshal(content, &b); err != nil {
		return nil, fmt.Errorf("decoding the dashboard: %w", err)
	}
	rules, err := readRules(charts)
	if err != nil {
		return nil, err
	}
	var all []Query
	for _, panel := range b.Panels {
		for _, target := range panel.Targets {
			all = append(all, Query{Where: "panel " + panel.Title, Expression: target.Expr})
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			all = append(all, Query{Where: "rule " + rule.Alert + rule.Record, Expression: rule.Expr})
		}
	}
	return all, nil
}

// readRules returns the alert rules of both charts.
func readRules(charts string) (ruleFile, error) {
	var all ruleFile
	for _, chart := range []string{"hub-agent", "member-agent"} {
		content, err := os.ReadFile(filepath.Join(charts, chart, "monitoring", "alerts.yaml"))
		if err != nil {
			return all, fmt.Errorf("reading the alert rules: %w", err)
		}
		var rules ruleFile
		if err := yaml.Unmarshal(content, &rules); err != nil {
			return all, fmt.Errorf("decoding the alert rules: %w", err)
		}
		all.Groups = append(all.Groups, rules.Groups...)
	}
	return all, nil
}

// The parser of Prometheus (v0.305) would bring 79 packages of 233 modules, the SDKs of
// three clouds among them, for the names in these few queries; expressions tell them well
// enough.
var (
	// what is no name of a metric, whatever it looks like: texts, matchers and labels, ranges.
	texts     = regexp.MustCompile(`"[^"]*"`)
	matchers  = regexp.MustCompile(`\{[^}]*\}`)
	groupings = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	ranges    = regexp.MustCompile(`\[[^\]]*\]`)
	// name is an identifier and whether a call follows.
	name = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
)

// operators are words of the language.
var operators = []string{"and", "or", "unless", "bool", "offset", "atan2", "le"}

// suffixes are those of the series of a histogram.
var suffixes = []string{"_bucket", "_sum", "_count"}

// Metrics returns the names of the metrics that an expression uses; a histogram's series count as the histogram.
func Metrics(expression string) []string {
	for _, other := range []*regexp.Regexp{texts, matchers, ranges, groupings} {
		expression = other.ReplaceAllString(expression, " ")
	}
	var found []string
	for _, word := range name.FindAllString(expression, -1) {
		if strings.HasSuffix(word, "(") || slices.Contains(operators, word) {
			continue
		}
		for _, suffix := range suffixes {
			word = strings.TrimSuffix(word, suffix)
		}
		if !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}
