package command

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// praise is a verb that the test makes up.
func praise() steer.Verb {
	return steer.Verb{
		Name: "praise", Takes: "RUN WORD", Group: steer.GroupRollout, Kinds: []hub.Kind{hub.KindRun}, Short: "Praise a run", Asks: true,
		CheckArguments: func([]string) error { return nil },
		New: func() *steer.Request {
			var word string
			return &steer.Request{
				Fields: []steer.Field{{Name: "word", Argument: true, Into: &word, Label: "Word", Missing: "say a word",
					Complete: func(context.Context, hub.Reader, hub.Found) ([]string, error) { return []string{"splendid"}, nil }}},
				Prepare: func(_ context.Context, call *steer.Call, target hub.Found) (steer.Deed, error) {
					return steer.Deed{Question: fmt.Sprintf("Praise %s?", target.Ref()), Do: func(context.Context) (steer.Result, error) {
						return steer.Result{Said: fmt.Sprintf("%s is %s", target.Ref(), word)}, nil
					}}, nil
				},
			}
		},
		Form: &steer.Form{
			Kinds:  []hub.Kind{hub.KindRun},
			Links:  func(hub.Found) []steer.Link { return []steer.Link{{Label: "Praise it"}} },
			Rights: func(target hub.Found) []steer.Right { return []steer.Right{{Verb: "patch", Object: target.Run.Object}} },
			Page: func(view steer.View) steer.Page {
				return steer.Page{Title: "Praise " + view.Target.Run.Name, Button: "Praise"}
			},
		},
	}
}

func TestAVerbIsOneFileAndOneLine(t *testing.T) {
	before := steer.Table
	steer.Table = append(slices.Clip(before), praise)
	t.Cleanup(func() { steer.Table = before })

	c := newConsole(t, approvalFleet()...)
	require.NoError(t, c.run("--help"))
	assert.Regexp(t, "praise +Praise a run", c.Out.String())
	require.NoError(t, c.run("__complete", "praise", "run/web-5", ""))
	assert.Contains(t, c.Out.String(), "splendid\n")
	require.Error(t, c.run("praise", "web-5", "splendid"), "it asks, and there is no terminal")
	require.NoError(t, c.run("praise", "web-5", "splendid", "--yes"))
	assert.Equal(t, "run/web-5 is splendid\n", c.Out.String())

	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	assert.Contains(t, b.get("/runs/web-5").Body.String(), `href="/runs/web-5/praise">Praise it`)
	assert.Contains(t, b.get("/runs/web-5/praise").Body.String(), `<h1>Praise web-5</h1>`)
	form := url.Values{"uid": {"run-uid"}, "key": {"a"}}
	refused := b.send(http.MethodPost, "/runs/web-5/praise", form)
	assert.Equal(t, http.StatusConflict, refused.Code)
	assert.Contains(t, refused.Body.String(), "say a word")
	form = url.Values{"uid": {"run-uid"}, "key": {"b"}, "word": {"splendid"}}
	require.Equal(t, http.StatusSeeOther, b.send(http.MethodPost, "/runs/web-5/praise", form).Code)
	assert.Contains(t, b.get("/runs/web-5?done=b").Body.String(), "run/web-5 is splendid")
}
