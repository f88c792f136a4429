package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// better are phrases that readers stumble over, by what to write instead. Case does not count, and a blank stands for any
// white space.
var better = map[string]string{
	`but for`:                             "except",
	`shall`:                               "should, has to, or the present tense",
	`(?:is|are|was|be) told of|tells? of`: "reports, describes, is reported",
	`can(?:not)? be told`:                 "is unknown",
	`seldom`:                              "after longer and longer pauses",
	`heard of|was heard`:                  "has reported",
	`somebody|someone|anybody|everybody|everyone|nobody|whoever`:   "name the users, clients or agents that are meant",
	`(?:reads?|serves?) the figures|figures of (?:the|an) agents?`: "metrics",
	`(?:reach|to) names`:            "DNS",
	`who leads|one that leads`:      "that holds the lease",
	`the named`:                     "the exceptions, or what is named",
	`mend(?:s|ed)?`:                 "correct, repair",
	`pokes?|poked`:                  "wake, signal",
	`hollow`:                        "simulated",
	`bare name`:                     "a name alone",
	`moreover|besides`:              "in addition, also",
	`bears?`:                        "has",
	`comes? along|brings? .* along`: "is installed, is placed",
	`in vain|thereof|therein|whereof|hereby|lest`: "say it with a verb",
	// Patterns of sentences, more than words: who does what to what, in this order.
	`(?-i:So) do(?:es)?`: "name the subject again, as in: The same applies to",
	`in spite of`:        "despite",
	`as ever`:            "as usual",
	`(?-i:Needed:)`:      "Requirements:",
	`worth nothing`:      "no longer valid",
	`(?:it|them|there|wanted|selected|exists?|known|picked) no more`: "no longer, before the verb",
	`other ones`:                 "differ",
	`(?:is|are|was) said by`:     "let what says it be the subject",
	`heeds?`:                     "follow, apply",
	`cared for`:                  "handled",
	`lets? go of`:                "remove, release",
	`fares?`:                     "name the state that is meant",
	`nonetheless`:                "anyway",
	`makes? no sense`:            "is invalid",
	`shut out`:                   "loses its access",
	`hardly`:                     "almost not, or more likely not",
	`promise I\d`:                "say what is promised",
	`belongs? into`:              "belong in",
	`(?:is|are) told so|as told`: "as described",
	`bec[oa]mes? of what`:        "happens to",
	`rather (?:is|has|does|are)`: "more likely, with the subject before the verb",
	`(?:for|by|from|to) who (?:may|can|reads|writes|creates)`: "name the users or clients that are meant",
	`worked in`: "applied",
	`(?:is|are|was|were) told (?:after|at once|once)|until it is told|that is told`: "is reported",
}

// glossary is the page that says which word stands for what, and which words do not.
const glossary = "deploy/docs/glossary.md"

// explained are the texts that users read: documents, values of charts, what charts print.
func explained(t *testing.T) []string {
	t.Helper()
	paths := documents(t)
	for _, pattern := range []string{"*/values.yaml", "*/examples/*.yaml", "*/templates/NOTES.txt"} {
		found, err := filepath.Glob(filepath.Join(repository, "deploy/charts", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	return paths
}

func TestTextsAreInPlainWords(t *testing.T) {
	use := maps.Clone(better)
	content, err := os.ReadFile(filepath.Join(repository, glossary))
	require.NoError(t, err)
	maps.Copy(use, otherWords(string(content)))
	require.Greater(t, len(use), 30)
	for _, path := range explained(t) {
		if strings.HasSuffix(path, glossary) {
			continue // it names the words that are not used
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, problem := range stumbles(textOf(path, string(content)), use) {
			assert.Fail(t, path+problem)
		}
	}
}

// speakers are the folders whose programs print sentences for users: conditions, events, errors, help.
var speakers = append(slices.Clone(emitters), "cmd/kubectl-fleet", "cmd/fleet-dashboard", "cmd/steer", "cmd/fleetview")

// What conditions, events, errors and help say is in string literals of the code; help and comments of the API are in the documents
// that are generated from them, too.
func TestMessagesAreInPlainWords(t *testing.T) {
	sentences := 0
	for _, folder := range speakers {
		root := filepath.Join(repository, folder)
		if _, err := os.Stat(root); os.IsNotExist(err) {
			continue
		}
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			lines, found, err := sentencesOf(string(content))
			if err != nil {
				return err
			}
			sentences += found
			for _, problem := range stumbles(lines, better) {
				assert.Fail(t, path+problem)
			}
			return nil
		}))
	}
	assert.Greater(t, sentences, 2000, "sentences found")
}

// forCode are the phrases that comments of the code may have, because code has the names: a poke is the signal that wakes a
// workflow, hollow is the package that simulates members, and a function tells what it returns.
var forCode = []string{`pokes?|poked`, `hollow`, `shut out`, `(?:is|are|was|were) told (?:after|at once|once)|until it is told|that is told`}

func TestCommentsAreInPlainWords(t *testing.T) {
	use := maps.Clone(better)
	for _, phrase := range forCode {
		require.Contains(t, use, phrase)
		delete(use, phrase)
	}
	comments := 0
	for _, folder := range []string{"activities", "apis", "cmd", "controllers", "test", "worker", "workflows"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			generated := strings.HasPrefix(entry.Name(), "zz_") || strings.HasSuffix(path, "_test.go")
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || generated {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			lines, found, err := commentsOf(string(content))
			if err != nil {
				return err
			}
			comments += found
			for _, problem := range stumbles(lines, use) {
				assert.Fail(t, path+problem)
			}
			return nil
		}))
	}
	assert.Greater(t, comments, 5000, "comments found")
}

// commentsOf returns the comments of Go code, each on the line where it stands, and how many there are.
func commentsOf(code string) (string, int, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", code, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", 0, err
	}
	lines := make([]string, strings.Count(code, "\n")+2)
	for _, group := range file.Comments {
		for _, comment := range group.List {
			for i, part := range strings.Split(comment.Text, "\n") {
				lines[files.Position(comment.Pos()).Line+i] = strings.TrimPrefix(part, "//")
			}
		}
	}
	return strings.Join(lines[1:], "\n"), len(file.Comments), nil
}

// sentencesOf are the string literals of Go code that have a few words, each on the line where it begins, and how many there are.
func sentencesOf(code string) (string, int, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", code, parser.SkipObjectResolution)
	if err != nil {
		return "", 0, err
	}
	lines := make([]string, strings.Count(code, "\n")+2)
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		literal, is := node.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || strings.Count(text, " ") < 2 {
			return true
		}
		found++
		// A raw string goes on over the lines that it has in the code. What cannot be a phrase stands between two literals.
		for i, part := range strings.Split(text+" \x00 ", "\n") {
			if at := files.Position(literal.Pos()).Line + i; at < len(lines) {
				lines[at] += part
			}
		}
		return true
	})
	return strings.Join(lines[1:], "\n"), found, nil
}

// otherWords are the words of the last column of the glossary, by what is said instead.
func otherWords(page string) map[string]string {
	words := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[3]) == "not" {
			continue
		}
		for other := range strings.SplitSeq(cells[3], ",") {
			if other = strings.TrimSpace(other); other != "" {
				words[regexp.QuoteMeta(other)+"s?"] = strings.TrimSpace(cells[1])
			}
		}
	}
	return words
}

// textOf is what is prose in a file, line by line: a document without code, the comments of values, the notes as they are.
func textOf(path, content string) string {
	switch filepath.Ext(path) {
	case ".md":
		return markdownText(content)
	case ".yaml":
		var lines []string
		for line := range strings.Lines(content) {
			_, comment, _ := strings.Cut(strings.TrimRight(line, "\n"), "#")
			lines = append(lines, comment)
		}
		return strings.Join(lines, "\n")
	}
	return content
}

// forDevelopers is where the first page begins to explain the code, which has words of its own, and where that ends.
var forDevelopers = [2]string{"\n## Folders\n", "\n## Status\n"}

// markdownText is a document without blocks and spans of code and without the part for developers, with as many lines as
// before.
func markdownText(content string) string {
	if before, rest, found := strings.Cut(content, forDevelopers[0]); found {
		code, after, _ := strings.Cut(rest, forDevelopers[1])
		content = before + strings.Repeat("\n", strings.Count(forDevelopers[0]+code+forDevelopers[1], "\n")) + after
	}
	var lines []string
	inside := false
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), fence) {
			inside = !inside
			line = ""
		}
		if inside {
			line = ""
		}
		lines = append(lines, inline.ReplaceAllString(line, "`…`"))
	}
	return strings.Join(lines, "\n")
}

// stumbles are the places in a text where a phrase is used for which there is a better one.
func stumbles(text string, use map[string]string) (found []string) {
	for phrase, instead := range use {
		pattern := regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(phrase, " ", `\s+`) + `)\b`)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			found = append(found, fmt.Sprintf(":%d: “%s”: write instead: %s", 1+strings.Count(text[:at[0]], "\n"), strings.Join(strings.Fields(text[at[0]:at[1]]), " "), instead))
		}
	}
	return found
}

func TestStumblesAreFound(t *testing.T) {
	use := map[string]string{`but for`: "except", `spokes?`: "member"}
	code, found, err := sentencesOf("package a\n\nconst b = `All but\nfor`\nconst spoke = \"spoke\"\n")
	require.NoError(t, err)
	assert.Equal(t, 0, found, "one blank, no sentence")
	assert.Empty(t, stumbles(code, use))
	code, found, err = sentencesOf("package a\n\nfunc f() string { return \"the spoke is away\" }\n")
	require.NoError(t, err)
	assert.Equal(t, 1, found)
	assert.Equal(t, []string{":3: “spoke”: write instead: member"}, stumbles(code, use))
	assert.Equal(t, []string{":2: “but for”: write instead: except"}, stumbles("All\nbut\nfor these.", use))
	assert.Empty(t, stumbles(markdownText("`but for` is code\n```\nspoke\n```\n"), use))
	assert.Equal(t, []string{":3: “Spokes”: write instead: member"}, stumbles(textOf("values.yaml", "a: 1\n\nb: 2 # Spokes\n"), use))
	assert.Equal(t, map[string]string{`letter box` + "s?": "mailbox"}, otherWords("| word | meaning | not |\n|---|---|---|\n| mailbox | it | letter box |\n| b | c | |\n"))
	assert.Equal(t, []string{":7: “spoke”: write instead: member"}, stumbles(markdownText("# T\n## Folders\n\nspoke\n\n## Status\nspoke\n"), use))
}

// mostWords is how many words a sentence of a page may have. One with more is read twice.
const mostWords = 40

var (
	sentenceEnds  = regexp.MustCompile(`[.!?;:] `)
	paragraphEnds = regexp.MustCompile(`\n\s*\n|\n\s*(?:- |\d+\. )|\n#|\n\|`)
)

// longSentences are those of a text with too many words; rows of tables are short by themselves.
func longSentences(text string) (found []string) {
	for _, paragraph := range paragraphEnds.Split(text, -1) {
		for _, sentence := range sentenceEnds.Split(strings.Join(strings.Fields(paragraph), " "), -1) {
			if words := strings.Fields(sentence); len(words) > mostWords && !strings.Contains(sentence, " | ") {
				found = append(found, fmt.Sprintf("%d words: %s", len(words), sentence))
			}
		}
	}
	return found
}

func TestSentencesOfPagesAreShort(t *testing.T) {
	for _, pattern := range append(slices.Clone(Run), "deploy/README.md") {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, sentence := range longSentences(markdownText(string(content))) {
				assert.Fail(t, path+": "+sentence, "make two sentences of it, or a list")
			}
		}
	}
}

func TestLongSentencesAreFound(t *testing.T) {
	long := strings.Repeat("word ", mostWords+1)
	assert.Len(t, longSentences("One.\n\n"+long+"end. Two."), 1)
	assert.Len(t, longSentences(strings.ReplaceAll(long, " ", "\n")), 1, "a line break does not end a sentence")
	for name, text := range map[string]string{
		"two sentences": "Word. " + long[:len(long)/2] + ". " + long[:len(long)/2],
		"a list":        "These:\n- " + long[:len(long)/2] + "\n- " + long[:len(long)/2],
		"a table":       "| a | " + long + " |",
		"a block":       markdownText("```console\n" + long + "\n```\n"),
	} {
		assert.Empty(t, longSentences(text), name)
	}
}
