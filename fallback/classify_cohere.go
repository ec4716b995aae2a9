package fallback

// cohereRoom: the client looks at no status. An empty response may be a refused key as well as an outage.
var cohereRoom = room{ //nolint:gochecknoglobals // compiled table
	sentences: []form{
		says(ClassBadResponse, `empty response$|parse response: `),
		says(ClassNotFound, `model not found`),
	},
}
