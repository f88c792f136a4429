package migration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

func TestScriptsThatWaitForWordsOfOlderReleasesAreTold(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"wait.sh":        "#!/bin/sh\nkubectl wait --for=condition=ClusterResourcePlacementSynchronized crp/web\nkubectl wait --for=condition=ClusterResourcePlacementApplied crp/web\n",
		"deep/rules.yml": "a: WorkSynchronizeSucceeded\nb: MyScheduleSucceededCounter\n",
		".git/config":    "ScheduleSucceeded",
		"image.png":      "\x89PNG\x00ScheduleSucceeded",
		"large.txt":      "ScheduleSucceeded" + strings.Repeat(" ", 1<<20),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	report := &migration.Report{}
	require.NoError(t, report.LookIntoScripts([]string{folder}))
	found := map[string]string{}
	for _, finding := range report.Of(migration.NoCounterpart) {
		assert.Equal(t, "WordOfOlderRelease", finding.Reason)
		found[strings.TrimPrefix(finding.Object, folder+"/")] = finding.Message
	}
	assert.Equal(t, map[string]string{
		"wait.sh:2":        "ClusterResourcePlacementSynchronized is a word of older releases, for which a script would wait for ever: ClusterResourcePlacementWorkSynchronized is written in its place",
		"deep/rules.yml:1": "WorkSynchronizeSucceeded is a word of older releases, for which a script would wait for ever: WorkSynchronized is written in its place",
	}, found)

	one := &migration.Report{}
	require.NoError(t, one.LookIntoScripts([]string{filepath.Join(folder, "deep", "rules.yml")}))
	assert.Len(t, one.Of(migration.NoCounterpart), 1)
	assert.ErrorContains(t, one.LookIntoScripts([]string{filepath.Join(folder, "none")}), "looking into scripts")
}

func TestTheGuideHasTheWordsOfOlderReleases(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "docs", "migration.md"))
	require.NoError(t, err)
	for word, now := range migration.OlderWords {
		row := ""
		for line := range strings.Lines(string(guide)) {
			if strings.HasPrefix(line, "|") && strings.Contains(line, "`"+word+"`") {
				row = line
			}
		}
		assert.Contains(t, row, "`"+now+"`", "the row of %s", word)
	}
}
