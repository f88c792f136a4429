package objectdiff

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestLinesAreAUnifiedDiff(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
	after := "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\n"
	assert.Equal(t, strings.Split("@@ -2,9 +2,10 @@; b; c; d;-e;+E; f; g; h; i; j;+k", ";"), Lines(before, after))
	assert.Empty(t, Lines(before, before))
	assert.Equal(t, []string{"@@ -0,0 +1 @@", "+a"}, Lines("", "a\n"))
}

// header is what GNU patch reads of a hunk.
var header = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$`)

func TestToolsFindTheLinesThatAHunkIsAbout(t *testing.T) {
	chance := rand.New(rand.NewPCG(8, 8))
	for range 2000 {
		a := lines(chance)
		b := lines(chance)
		diff := unifiedDiff(strings.Join(a, "\n"), strings.Join(b, "\n"), 1)
		made := []string{}
		at := 0
		for i := 0; i < len(diff); {
			spans := header.FindStringSubmatch(diff[i])
			require.NotNil(t, spans, diff[i])
			first := number(spans[1], 0)
			left := number(spans[2], 1)
			right := number(spans[4], 1)
			if left > 0 {
				first--
			}
			made = append(made, a[at:first]...)
			at = first
			require.Len(t, made, number(spans[3], 0)-min(right, 1), "the hunk begins elsewhere in what comes of it")
			for i++; i < len(diff) && diff[i][0] != '@'; i++ {
				if diff[i][0] != '+' {
					require.Equal(t, a[at], diff[i][1:])
					at = at + 1
					left = left - 1
				}
				if diff[i][0] != '-' {
					made = append(made, diff[i][1:])
					right = right - 1
				}
			}
			require.Zero(t, left, diff)
			require.Zero(t, right, diff)
		}
		require.Equal(t, strings.Join(b, "\n"), strings.Join(append(made, a[at:]...), "\n"), "%v", diff)
	}
}

func number(text string, otherwise int) int {
	if number, err := strconv.Atoi(text); err == nil {
		return number
	}
	return otherwise
}

func TestEditsLeadFromOneTextToTheOther(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		a := lines(chance)
		b := lines(chance)
		var left, right []string
		changed := 0
		for _, line := range unifiedDiff(strings.Join(a, "\n"), strings.Join(b, "\n"), 10) {
			switch sign, text := line[0], line[1:]; sign {
			case '@':
			case ' ':
				left = append(left, text)
				right = append(right, text)
			case '-':
				left = append(left, text)
				changed = changed + 1
			case '+':
				right = append(right, text)
				changed = changed + 1
			}
		}
		if changed == 0 {
			require.Equal(t, a, b)
			continue
		}
		require.Equal(t, a, left)
		require.Equal(t, b, right)
		require.Equal(t, len(a)+len(b)-2*common(a, b), changed, "%v %v: not the shortest", a, b)
	}
}

func lines(chance *rand.Rand) []string {
	var all []string
	for range chance.IntN(9) {
		all = append(all, fmt.Sprint(chance.IntN(4)))
	}
	return all
}

// common is the length of the longest common subsequence, by its definition.
func common(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	if a[0] == b[0] {
		return 1 + common(a[1:], b[1:])
	}
	return max(common(a[1:], b), common(a, b[1:]))
}

func objects(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		object := unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		all = append(all, object)
	}
	return all
}

const secretBefore = `apiVersion: v1
kind: Secret
metadata:
  name: login
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"aHVudGVyMg=="}}'
data:
  user: YWxpY2U=
  password: aHVudGVyMg==
`

const secretAfter = `apiVersion: v1
kind: Secret
metadata:
  name: login
  namespace: shop
data:
  user: YWxpY2U=
  password: aHVudGVyMw==
  token: dG9rZW4=
`

func TestSecretsAreMaskedWhereverTheyChange(t *testing.T) {
	for sentence, pair := range map[string][2]string{"changed": {secretBefore, secretAfter}, "added": {"", secretAfter}, "removed": {secretBefore, ""}} {
		t.Run(sentence, func(t *testing.T) {
			var before, after []unstructured.Unstructured
			if pair[0] != "" {
				before = objects(t, pair[0])
			}
			if pair[1] != "" {
				after = objects(t, pair[1])
			}
			changes, err := Objects(before, after)
			require.NoError(t, err)
			require.Len(t, changes, 1)
			assert.Equal(t, sentence, changes[0].Change)
			text := strings.Join(changes[0].Lines, "\n")
			for _, value := range []string{"YWxpY2U=", "aHVudGVyMg==", "aHVudGVyMw==", "dG9rZW4="} {
				assert.NotContains(t, text, value)
			}
		})
	}
	changes, err := Objects(objects(t, secretBefore), objects(t, secretAfter))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"@@ -1,6 +1,7 @@", " apiVersion: v1", " data:", "-  password: '*** (before)'", "+  password: '*** (after)'", "+  token: '***'", "   user: '***'", " kind: Secret", " metadata:",
	}, changes[0].Lines)
}

func TestObjectsAreToldApartByKindAndNameNotByVersion(t *testing.T) {
	changes, err := Objects(
		objects(t, "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: shop}\n"),
		objects(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"))
	require.NoError(t, err)
	require.Len(t, changes, 2)
	assert.Equal(t, Change{Object: "ConfigMap shop/old", Change: Removed}, changes[0])
	assert.Equal(t, "Deployment.apps shop/web", changes[1].Object)
	assert.Equal(t, Changed, changes[1].Change)
}
