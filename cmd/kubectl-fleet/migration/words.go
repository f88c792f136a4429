package migration

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// OlderWords are words that older releases of KubeFleet wrote into conditions, as its documentation still prints them, and those that are
// written in their place.
var OlderWords = map[string]string{
	"ClusterResourcePlacementSynchronized": "ClusterResourcePlacementWorkSynchronized",
	"SynchronizeSucceeded":                 "WorkSynchronized",
	"WorkSynchronizeSucceeded":             "WorkSynchronized",
	"ResourceScheduled":                    "Scheduled",
	"ScheduleSucceeded":                    "Scheduled",
	"ResourceApplied":                      "Applied",
	"AllWorkHasBeenApplied":                "AllWorkHaveBeenApplied",
	"WorkAppliedCompleted":                 "AllManifestsApplied",
	"WorkAppliedFailed":                    "SomeManifestsAreNotApplied",
	"WorkNotAvailableYet":                  "SomeManifestsAreNotAvailable",
	"AppliedManifestFailedReason":          "ManifestApplyFailed",
	"ManifestsAlreadyOwnedByOthers":        "FailedToTakeOver",
	"ManifestAlreadyUpToDate":              "Applied",
	"ManifestAvailable":                    "Available",
}

// largestScript is how large a file is that is looked into: what is larger was not written by hand.
const largestScript = 1 << 20

// olderWord finds an older word that is no part of another.
var olderWord = regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(OlderWords)), "|") + `)\b`)

// LookIntoScripts adds to the report which lines of scripts, manifests and rules have a word of an older release: what waits for that waits
// for ever. Directories are looked into with all that is in them; files that are no text are left out.
func (r *Report) LookIntoScripts(paths []string) error {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == ".git":
				return fs.SkipDir
			case !entry.Type().IsRegular() && file != path || entry.IsDir():
				return nil
			}
			return r.lookIntoScript(file)
		})
		if err != nil {
			return fmt.Errorf("looking into scripts: %w", err)
		}
	}
	return nil
}

func (r *Report) lookIntoScript(file string) error {
	info, err := os.Stat(file)
	if err != nil || info.Size() > largestScript {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	line := 0
	for content := range bytes.Lines(text) {
		line++
		words := map[string]bool{}
		for _, word := range olderWord.FindAll(content, -1) {
			words[string(word)] = true
		}
		for _, word := range slices.Sorted(maps.Keys(words)) {
			r.find(NoCounterpart, "WordOfOlderRelease", fmt.Sprintf("%s:%d", file, line),
				word+" is a word of older releases, for which a script would wait for ever: "+OlderWords[word]+" is written in its place")
		}
	}
	return nil
}
