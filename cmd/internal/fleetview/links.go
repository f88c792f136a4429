package fleetview

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// linkAnnotation is what annotations of placements begin with that name pages elsewhere, such as fleetflow.io/link-runbook.
const linkAnnotation = "fleetflow.io/link-"

// Link is a page elsewhere. The writer of the placement chooses it, so the user is shown the host.
type Link struct{ Name, URL, Host string }

// LinksOf returns the links in annotations; what is no web page is none.
func LinksOf(annotations map[string]string) []Link {
	var links []Link
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, is := strings.CutPrefix(key, linkAnnotation)
		to, err := url.Parse(annotations[key])
		if is && err == nil && (to.Scheme == "https" || to.Scheme == "http") && to.Host != "" && to.User == nil {
			links = append(links, Link{name, to.String(), to.Host})
		}
	}
	return links
}
