def write_page():
    return ""
