package web

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// pictures is where the pictures of the guide are.
	pictures = "../../deploy/docs/images"
	// maxPictures is how many bytes all of them may have together.
	maxPictures = 1700 << 10
)

// picturesEnv has the pictures of the guide written: make pictures sets it.
const picturesEnv = "FLEETFLOW_WEB_PICTURES"

// shot is a page as the guide shows it.
type shot struct {
	name, path, scheme string
	width, height      int64
	// text can be read on the page when the picture is taken.
	text string
}

var shots = []shot{
	{"fleet", "/", "light", 1100, 860, "checkout-7"},
	{"fleet-phone-dark", "/", "dark", 360, 760, "checkout-7"},
	{"waiting", "/waiting", "light", 1100, 480, "checkout-7"},
	{"approve", approvePage, "light", 1100, 860, "checkout:1.42.0"},
	{"approve-phone", approvePage, "light", 360, 760, "checkout:1.42.0"},
	{"run", "/runs/catalog-12", "light", 1440, 1120, "approval"},
	{"run-dark", "/runs/checkout-7", "dark", 1100, 900, "approval"},
	{"run-stuck", "/runs/payments-4", "light", 1100, 700, "prod-eu-2"},
	{"analyses", "/runs/payments-4/analyses", "light", 1100, 640, "wanted: result <= 0.05"},
	{"map", "/map?by=environment", "light", 1100, 860, "Who has which version"},
	{"placement", "/placements/payments", "light", 1100, 640, "1 of 3"},
	{"placement-drift", "/placements/catalog#clusters", "light", 1100, 900, "1 of 8 clusters differ"},
	{"history", "/history?span=1h", "light", 1100, 760, "stops the line"},
	{"run-thousand", "/runs/web-1", "light", 1100, 700, "1/1000"},
	{"hub-away", "/clusters", "light", 1100, 560, "may be old"},
}

// course is what becomes of a run from its plan to its end, in the pictures that tell it.
var course = []struct {
	name, text string
	run        func() *placementv1beta1.ClusterStagedUpdateRun
}{
	{"course-1-planned", "pending", func() *placementv1beta1.ClusterStagedUpdateRun { return notBegun(newRun("mail-2", "mail", 2)) }},
	{"course-2-waits", "kubectl fleet approve", func() *placementv1beta1.ClusterStagedUpdateRun { return soaked(newRun("mail-2", "mail", 2)) }},
	{"course-3-production", "1/4, 1 under way", func() *placementv1beta1.ClusterStagedUpdateRun { return inProduction(newRun("mail-2", "mail", 2), "") }},
	{"course-4-done", "4/4", func() *placementv1beta1.ClusterStagedUpdateRun {
		run := inProduction(newRun("mail-2", "mail", 2), "")
		last := &run.Status.StagesStatus[2]
		for i := range last.Clusters {
			last.Clusters[i] = done(last.Clusters[i].ClusterName, time.Minute)
		}
		ended := ago(time.Minute)
		last.EndTime = &ended
		last.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, time.Minute, "")}
		return says(run, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunSucceeded, time.Minute, ""))
	}},
}

// takeCourse takes the pictures of a run from its plan to its end: it changes while the page is open.
func takeCourse(t *testing.T) {
	t.Helper()
	h := newHub(t, storeWith("")...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.size(1100, 430)
	x.open("/runs/mail-2#pipeline")
	x.isLive()
	for _, step := range course {
		wanted := step.run()
		run := h.run(t, "mail-2")
		run.Spec = wanted.Spec
		require.NoError(t, h.Update(t.Context(), run))
		h.change(t, "mail-2", func(run *placementv1beta1.ClusterStagedUpdateRun) { run.Status = wanted.Status })
		x.until("document.querySelector('#pipeline').innerText.includes('" + step.text + "')")
		ask[bool](x, "document.querySelector('#pipeline').scrollIntoView(), true")
		takePicture(x, pictureOf(shot{name: step.name}))
	}
}

func pictureOf(s shot) string { return filepath.Join(pictures, "dashboard-"+s.name+".png") }

func TestPicturesOfTheGuide(t *testing.T) {
	if os.Getenv(picturesEnv) != "" {
		takePictures(t)
		takeCourse(t)
	}
	var total int64
	for _, s := range shots {
		info, err := os.Stat(pictureOf(s))
		require.NoError(t, err, "make pictures writes it")
		total += info.Size()
	}
	for _, step := range course {
		info, err := os.Stat(pictureOf(shot{name: step.name}))
		require.NoError(t, err, "make pictures writes it")
		total += info.Size()
	}
	assert.Less(t, total, int64(maxPictures))
}

func takePictures(t *testing.T) {
	t.Helper()
	shoot(t, func(s shot, x *tab) { takePicture(x, pictureOf(s)) })
}

// shoot shows each page as the guide does.
func shoot(t *testing.T, shown func(s shot, x *tab)) {
	t.Helper()
	small := newHub(t, storeWith("")...)
	large := newHub(t, edges(1000)...)
	ofSmall := browse(t, serve(t, small.as("jane", true), anyPort))
	ofLarge := browse(t, serve(t, large.as("jane", true), anyPort))
	for _, s := range shots {
		x := ofSmall
		switch s.name {
		case "run-thousand":
			x = ofLarge
		case "hub-away":
			small.goAway()
		}
		x.size(s.width, s.height)
		x.scheme(s.scheme)
		x.open(s.path)
		x.shows(s.text)
		shown(s, x)
	}
}

func takePicture(x *tab, file string) {
	x.t.Helper()
	var small bytes.Buffer
	require.NoError(x.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, x.look()))
	require.NoError(x.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(x.t, os.WriteFile(file, small.Bytes(), 0o644))
}

// look returns what the browser shows.
func (x *tab) look() image.Image {
	x.t.Helper()
	ctx, cancel := x.bounded()
	defer cancel()
	taken, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(x.t, err)
	picture, err := png.Decode(bytes.NewReader(taken))
	require.NoError(x.t, err)
	return picture
}
