package fleetview

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCellsAreTextsToASpreadsheet(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"web-17":                   "web-17",
		"a = b":                    "a = b",
		"two\nlines":               "two\nlines",
		"=HYPERLINK(1)":            "'=HYPERLINK(1)",
		"lgtm;=HYPERLINK(1)":       "lgtm;'=HYPERLINK(1)",
		"a; \"@x\"":                "a; \"'@x\"",
		"a|-1":                     "a|'-1",
		"a\n+1":                    "a\n'+1",
		"=a;=b":                    "'=a;'=b",
		"a - b; c = d":             "a - b; c = d",
		"+1":                       "'+1",
		"-1":                       "'-1",
		"@SUM(1)":                  "'@SUM(1)",
		"\t=1":                     "' =1",
		"\r\n=1":                   "' \n'=1",
		"\x00=1":                   "'=1",
		"\u200b=1":                 "'=1",
		"\ufeff@a":                 "'@a",
		"＝1":                       "'＝1",
		"a\x1b[31mb\u202ec\u0085d": "a[31mbc d",
	} {
		assert.Equal(t, want, cellText(text), "%q", text)
	}
}
