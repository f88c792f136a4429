package charts

import (
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// Values stand in groups with empty lines between them; each group begins with what it is for.
func TestEveryGroupOfValuesIsExplained(t *testing.T) {
	for name := range required() {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(path.Join(root, "deploy", "charts", name, "values.yaml"))
			require.NoError(t, err)
			groups := strings.Split(strings.TrimSpace(string(content)), "\n\n")
			assert.Greater(t, len(groups), 10)
			for _, group := range groups {
				assert.True(t, strings.HasPrefix(group, "# "), "what is this for?\n%s", group)
			}
		})
	}
}

// TestEveryValueIsInTheTableAndInEditors asks for what make generate makes of the comments.
func TestEveryValueIsInTheTableAndInEditors(t *testing.T) {
	for name := range required() {
		t.Run(name, func(t *testing.T) {
			read := func(file string, into any) string {
				content, err := os.ReadFile(path.Join(root, "deploy", "charts", name, file))
				require.NoError(t, err)
				if into != nil {
					require.NoError(t, yaml.Unmarshal(content, into))
				}
				return string(content)
			}
			given := values{}
			schema := struct {
				Properties map[string]struct{ Description string }
			}{}
			read("values.yaml", &given)
			read("values.schema.json", &schema)
			readme := read("README.md", nil)
			for key := range given {
				assert.Regexp(t, "(\\| |<br>)`"+key+"[.`]", readme)
				assert.NotEmpty(t, schema.Properties[key].Description, key)
			}
		})
	}
}

// TestReplacedValuesAreRefusedAndListed: a value that nothing reads would leave users without the right, or the Temporal, that it was
// to give. The guide says what to write instead.
func TestReplacedValuesAreRefusedAndListed(t *testing.T) {
	guide := contentOf(t, "docs", "renamed.md")
	for replaced, instead := range map[string]string{
		"guardRail.whitelistedUsers": "write guardRail.allowedUsers", "guardRail.whitelistedGroups": "write guardRail.allowedGroups",
		"temporal.bundled.enabled": "set temporal.mode=Bundled", "temporal.bundled.persistence": "begins empty", "networkPolicy.temporalFrom": "No other Pod",
	} {
		assert.Contains(t, guide, "`"+replaced+"`")
		given, err := strvals.Parse(replaced + "=true")
		require.NoError(t, err)
		_, err = with(t, "hub-agent", given)
		require.ErrorContains(t, err, replaced)
		assert.ErrorContains(t, err, instead)
	}
}

// notes are what Helm prints after an installation or an upgrade.
func notes(t *testing.T, name string, additional values) string {
	t.Helper()
	v := required()[name]
	merge(v, additional)
	rendered, err := render(t, name, v)
	require.NoError(t, err)
	return rendered[name+"/templates/NOTES.txt"]
}

func TestNotesSayWhatComesNext(t *testing.T) {
	for sentence, test := range map[string]struct {
		chart      string
		values     values
		want, lack string
	}{
		"a hub with a Temporal of its own":     {"hub-agent", nil, "Rollouts need Temporal at temporal.example.com:7233", "8233"},
		"a hub with the bundled Temporal":      {"hub-agent", values{"temporal": values{"address": ""}}, "Temporal runs beside the agent", "EngineReachable"},
		"a hub with guard rails":               {"hub-agent", nil, "Guard rails are in force", "helm show crds"},
		"a hub without":                        {"hub-agent", values{"enableGuardRail": false}, "kubectl get memberclusters", "Guard rails"},
		"a member by the CAs of the system":    {"member-agent", nil, "set config.hubCA", "tlsClientInsecure"},
		"a member that knows the hub's CA":     {"member-agent", values{"config": values{"hubCA": "YQ=="}}, "kubectl get membercluster member-1", "hubCA"},
		"a member that does not check the hub": {"member-agent", values{"tlsClientInsecure": true}, "instead of tlsClientInsecure", "CAs of the system"},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := notes(t, test.chart, test.values)
			assert.Contains(t, text, test.want)
			assert.NotContains(t, text, test.lack)
		})
	}
}
