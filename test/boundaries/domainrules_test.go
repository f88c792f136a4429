package boundaries

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rules of the domain have one function each, in apis/placement/rules/rules.go. A pattern is how a copy of the rule
// would be written, in any other file of the product.
var domainRules = map[string]struct {
	pattern *regexp.Regexp
	// but are files that may match.
	but []string
}{
	"a run is over":                     {pattern: regexp.MustCompile(`IsStatusConditionFalse\([^)]*ConditionTypeInitialized\)`)},
	"update runs roll a placement out":  {pattern: regexp.MustCompile(`== (placementv1beta1\.)?ExternalRolloutStrategyType`)},
	"a binding is live":                 {pattern: regexp.MustCompile(`!= (placementv1beta1\.)?BindingStateUnscheduled`), but: []string{"activities/scheduler/facts.go"}},
	"a snapshot is the latest":          {pattern: regexp.MustCompile(`IsLatestSnapshotLabel\] [!=]= (placementv1beta1\.)?LabelValueTrue`)},
	"the limits of a rolling update":    {pattern: regexp.MustCompile(`FromString\("25%"\)`)},
	"the deletion of an object started": {pattern: regexp.MustCompile(`GetDeletionTimestamp\(\)\.IsZero\(\) [!=]= `)},
	"a rollout is stuck":                {pattern: regexp.MustCompile(`(?i)stuckAfter += 5 \* time\.Minute`), but: []string{"workflows/contract/contract.go"}},
	"a binding is updated or removed":   {pattern: regexp.MustCompile(`\bbind\.(PointTo|Remove)\(`)}, // bind.Writer does that
	"how many decisions there are":      {pattern: regexp.MustCompile(`(?i)decisions += 1000`)},
}

func TestEachRuleOfTheDomainIsStatedOnce(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string][]string{}
	for _, top := range []string{"activities", "apis", "cmd", "controllers", "worker", "workflows"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			for rule, is := range domainRules {
				if is.pattern.Match(source) {
					found[rule] = append(found[rule], filepath.ToSlash(name))
				}
			}
			return err
		}))
	}
	for rule, is := range domainRules {
		assert.Subset(t, append([]string{"apis/placement/rules/rules.go"}, is.but...), found[rule], "%s: call the function in rules.go", rule)
	}
}
