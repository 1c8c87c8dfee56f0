def test_x(api, app):
    from tests.factories import platform_token

    t = platform_token()
    a = api.post("/v1/tenants", token=t, json={"idp_org_id": "org_abc", "name": "Acme Rocket"})
    print(a.json)
    tid = a.json["data"]["id"]
    a = api.post(
        "/v1/users",
        token=t,
        query_string={"tenant_id": tid},
        json={
            "idp_user_id": "auth0|x1",
            "email": "jorg.weiss@example.com",
            "first_name": "Jörg",
            "last_name": "Weiß",
        },
    )
    a = api.get("/v1/search", token=t, query_string={"q": "weiss jorg"})
    print(a.json)
    a = api.get("/v1/search", token=t, query_string={"q": "ex jorg"})
    print(a.json)
    a = api.get("/v1/search", token=t, query_string={"q": "org_ab"})
    print(a.json)
    a = api.get("/v1/search", token=t, query_string={"q": "é", "types": "x,user"})
    print(a.json)
    a = api.get("/v1/search", token=t, query_string={"q": "é!", "types": "user"})
    print(a.json)
